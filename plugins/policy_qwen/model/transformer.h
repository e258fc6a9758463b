// The transformer of Qwen2, Qwen3 and Llama: from token ids to final hidden states, and back to gradients. One
// implementation for the three, which differ by biases and by Qwen3's norms of q and k, and for CPU and GPU, which
// differ by their operators (ops.h). Used by scorer.h to score and to train, and by generation/cpu_model.cc to read
// prompts.
//
// Sequences are packed without padding. Only the last rows of each sequence ("outputs") are wanted: in the last layer
// nothing but their keys and values is computed for the other rows, which for short completions halves the work.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_TRANSFORMER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_TRANSFORMER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "policy_qwen/model/attention.h"
#include "policy_qwen/model/config.h"
#include "policy_qwen/model/ops.h"
#include "policy_qwen/model/parameters.h"

namespace kgrpo::policy {

// Cosines and sines of all positions so far asked for. One thread at a time.
class RotaryTable {
 public:
  RotaryTable(const ModelConfig& config, at::ScalarType dtype, at::Device device);

  // Angles of `positions` (int64 [rows], on the device), all of which are below `limit`.
  RotaryAngles At(const at::Tensor& positions, int64_t limit);

  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }

 private:
  void Grow(int64_t positions);

  std::vector<float> frequencies_;
  float attention_factor_;  // of cosines and sines
  at::ScalarType dtype_;
  at::Device device_;
  at::Tensor cos_, sin_;  // [positions so far, 1, head size], [.., 1, head size / 2]
};

// One sequence of a batch: its input ids, and how many of its last rows are outputs (at least 1).
struct PackedSequence {
  std::vector<int32_t> ids;
  int64_t output_count = 1;
};

// Packed sequences, ready for the transformer.
struct PackedBatch {
  at::Tensor ids;              // int64 [rows]
  at::Tensor output_rows;      // int64 [outputs]: the last rows of each sequence
  RotaryAngles angles;         // of all rows, as Ops::Angles
  RotaryAngles output_angles;  // likewise
  AttentionPlan plan;          // all rows are queries; empty for a single layer
  AttentionPlan output_plan;   // output rows are queries
};

// Values of one layer's forward that its backward needs. If only `input` is kept, the backward computes the rest again.
// [rows] of all, [queries] of the rows that go on: all, or the outputs in the last layer.
struct LayerActivations {
  at::Tensor input;            // [rows, hidden]
  at::Tensor attention_scale;  // of the norm
  at::Tensor attention_input;  // [rows, hidden], normalised
  at::Tensor query_input;      // [queries, hidden]: attention_input of the queries
  at::Tensor query, key;       // [.., heads, head size] before their norms, compact; only with query_key_norm
  at::Tensor query_scale, key_scale;
  AttentionActivations attention;
  at::Tensor attention_output;  // [queries, query size]
  at::Tensor middle;            // [queries, hidden]: after the attention
  at::Tensor mlp_scale;
  at::Tensor mlp_input;   // [queries, hidden], normalised
  at::Tensor gate_up;     // [queries, 2 intermediate]
  at::Tensor mlp_hidden;  // [queries, intermediate]

  bool whole() const { return middle.defined(); }
};

struct Activations {
  bool inputs_only = false;  // the caller's choice: of each layer keep only its input
  std::vector<LayerActivations> layers;
  at::Tensor final_input;  // [outputs, hidden]
  at::Tensor final_scale;
};

// Receives the keys (rotated) and values of a layer: [rows, kv heads, head size] each.
using KeyValueSink = std::function<void(int64_t layer, const at::Tensor& keys, const at::Tensor& values)>;

// Called with each ParameterSpec::layer once a backward pass adds nothing more to that layer's gradients (on a GPU:
// once the last addition is queued). Layers come in descending order, from the number of layers to kEmbedding; the
// head's gradient must be complete before the pass.
using LayerDone = std::function<void(int64_t layer)>;

// One thread at a time, inside an InferenceMode with the weights' device current.
class Transformer {
 public:
  // `config` and `ops` outlive it.
  Transformer(const ModelConfig& config, const Ops& ops) : config_(config), ops_(ops) {}

  // The batch lies on the table's device.
  PackedBatch Pack(const std::vector<PackedSequence>& sequences, RotaryTable& rotary) const;

  // Final hidden states, normalised, of the outputs: [outputs, hidden]. `saved` (for the backward) may be null, `sink`
  // empty.
  at::Tensor Forward(const Weights& weights, const PackedBatch& batch, Activations* saved,
                     const KeyValueSink& sink = {}) const;

  // Adds to `gradients` the derivatives by all parameters but the head's, given the derivative by Forward's result.
  // Gradients of frozen parameters are undefined tensors, and are not computed. `done` may be empty. Consumes `saved`,
  // layer by layer.
  void Backward(const Weights& weights, const Weights& gradients, const PackedBatch& batch, Activations& saved,
                const at::Tensor& d_hidden, const LayerDone& done = {}) const;

 private:
  at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight, at::Tensor& scale) const;
  // The rotated queries and keys and the values of a layer: [.., heads, head size].
  struct Projected {
    at::Tensor query, key, value;
  };
  Projected Project(const LayerWeights& w, const PackedBatch& batch, bool is_last, LayerActivations& saved) const;
  // Returns the next layer's input. Sets all of `saved` but input; `keeps`: also what attention's backward needs.
  at::Tensor Layer(const Weights& weights, int64_t index, const PackedBatch& batch, const at::Tensor& x,
                   LayerActivations& saved, bool keeps, const KeyValueSink& sink) const;
  at::Tensor LayerBackward(const LayerWeights& w, const LayerWeights& gradients, const PackedBatch& batch, bool is_last,
                           LayerActivations& saved, at::Tensor dx) const;
  // Returns the derivative by attention_input.
  at::Tensor ProjectBackward(const LayerWeights& w, const LayerWeights& gradients, const PackedBatch& batch,
                             bool is_last, const LayerActivations& saved, const AttentionGradients& d) const;

  const ModelConfig& config_;
  const Ops& ops_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_TRANSFORMER_H_
