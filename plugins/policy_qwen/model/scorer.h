// Log-probabilities of completions, and their derivative: the transformer under a head whose logits exist a block of
// rows at a time, so that [all rows, vocabulary] never does. Used by policy_scoring.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_SCORER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_SCORER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "policy_qwen/model/config.h"
#include "policy_qwen/model/ops.h"
#include "policy_qwen/model/parameters.h"
#include "policy_qwen/model/transformer.h"

namespace kgrpo::policy {

// Sequences that went through the model together, and what their backward needs.
struct ScoredPass {
  PackedBatch batch;
  at::Tensor targets;       // int64 [outputs]
  at::Tensor hidden;        // [outputs, hidden]
  at::Tensor normalizers;   // as Ops::Logprobs, of all outputs
  Activations activations;  // without layers: the backward begins with another forward
  int64_t bytes = 0;        // that all activations take
};

// One thread at a time, inside an InferenceMode with the device current. An allocation that fails throws
// c10::OutOfMemoryError.
class Scorer {
 public:
  // `config`, `ops` and `rotary` (the same table as generation's) outlive the scorer.
  Scorer(const ModelConfig& config, const Ops& ops, RotaryTable& rotary)
      : config_(config), ops_(ops), rotary_(rotary), transformer_(config, ops) {}

  struct Result {
    at::Tensor logprobs;   // float32 [outputs], sequence after sequence
    at::Tensor entropies;  // likewise, nats; undefined unless wanted
    ScoredPass pass;       // only with `room`
  };
  // Scores each sequence's targets under softmax(logits / temperature) over the full vocabulary. With `room`, keeps
  // what Backward needs: all activations if they take at most `room` bytes, else the layers' inputs, from which the
  // backward computes each layer again, if those do; subtracts what it keeps.
  Result Forward(const Weights& weights, const std::vector<PackedSequence>& sequences,
                 const std::vector<int64_t>& targets, double temperature, bool want_entropies, int64_t* room);

  // Adds to `gradients` the derivative of sum(d_logprobs logprobs); d_logprobs float32 [outputs] on the device. The
  // forward, if it is computed again, keeps at most `room` bytes or the layers' inputs. `done` may be empty.
  void Backward(const Weights& weights, const Weights& gradients, ScoredPass pass, double temperature,
                const at::Tensor& d_logprobs, int64_t room, const LayerDone& done = {});

  // Approximate bytes of a sequence's activations, or of the layers' inputs only.
  int64_t ActivationBytes(int64_t length, bool inputs_only) const;

 private:
  const ModelConfig& config_;
  const Ops& ops_;
  RotaryTable& rotary_;
  const Transformer transformer_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_SCORER_H_
