// One step of generation: a token of every sequence through the model. Used by the generator.
//
// On a CPU the step is computed row by row (row_decoder.cc), so that a sequence's bits do not depend on what shares its
// batch; elsewhere by libtorch's operators on the whole batch (decoder.cc).
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_DECODER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_DECODER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "policy_qwen/model/config.h"
#include "policy_qwen/model/key_value_cache.h"
#include "policy_qwen/model/parameters.h"
#include "policy_qwen/model/transformer.h"

namespace kgrpo::policy {

// One thread at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // Feeds token ids[i] of row i at its position; its keys and values are written to the cache's open column. Returns
  // the final hidden states, normalised: [rows, hidden].
  virtual at::Tensor Step(const std::vector<int64_t>& ids, const std::vector<int64_t>& positions,
                          KeyValueCache& cache) = 0;

  // logits / temperature of final hidden states (of Step or TransformerForward), float32 [rows, vocabulary].
  virtual at::Tensor Logits(const at::Tensor& hidden, double temperature) = 0;
};

// The decoder for the device that the weights are on. All arguments outlive it.
std::unique_ptr<Decoder> MakeDecoder(const ModelConfig& config, const Weights& weights, RotaryTable& rotary);

// The decoder for CPUs.
std::unique_ptr<Decoder> MakeRowDecoder(const ModelConfig& config, const Weights& weights, RotaryTable& rotary);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_DECODER_H_
