// The transformer of Qwen2, Qwen3 and Llama: from token ids to final hidden states, and back to gradients. One
// implementation for the three, which differ by biases and by Qwen3's norms of q and k. Used by the policy to score and
// to train, and by generation/cpu_model.cc to read prompts.
//
// Sequences are packed without padding. Only the last rows of each sequence ("outputs") are wanted: in the last layer
// nothing but their keys and values is computed for the other rows, which for short completions halves the work.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_TRANSFORMER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_TRANSFORMER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
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

 private:
  void Grow(int64_t positions);

  std::vector<float> frequencies_;
  float attention_factor_;  // of cosines and sines
  at::ScalarType dtype_;
  at::Device device_;
  at::Tensor cos_, sin_;  // [positions so far, 1, head size], [.., 1, head size / 2]
};

// Packed sequences, ready for the transformer.
struct PackedBatch {
  at::Tensor ids;          // int64 [rows]
  at::Tensor output_rows;  // int64 [outputs]: the last rows of each sequence
  RotaryAngles angles;     // of all rows
  RotaryAngles output_angles;
  AttentionPlan plan;         // all rows are queries
  AttentionPlan output_plan;  // output rows are queries
};

// One sequence of a batch: its input ids, and how many of its last rows are outputs (at least 1).
struct PackedSequence {
  std::vector<int32_t> ids;
  int64_t output_count = 1;
};

PackedBatch PackSequences(const ModelConfig& config, const std::vector<PackedSequence>& sequences, RotaryTable& rotary,
                          at::Device device);

// Values of one layer's forward that its backward needs. [rows] of all, [queries] of the rows that go on: all, or the
// outputs in the last layer.
struct LayerActivations {
  at::Tensor input;            // [rows, hidden]
  at::Tensor attention_scale;  // of the norm
  at::Tensor attention_input;  // [rows, hidden], normalised
  at::Tensor query_input;      // [queries, hidden]: attention_input of the queries
  at::Tensor query, key;       // before their norms; only with query_key_norm
  at::Tensor query_scale, key_scale;
  AttentionActivations attention;
  at::Tensor attention_output;  // [queries, query size]
  at::Tensor middle;            // [queries, hidden]: after the attention
  at::Tensor mlp_scale;
  at::Tensor mlp_input;   // [queries, hidden], normalised
  at::Tensor gate_up;     // [queries, 2 intermediate]
  at::Tensor mlp_hidden;  // [queries, intermediate]
};

struct Activations {
  std::vector<LayerActivations> layers;
  at::Tensor final_input;  // [outputs, hidden]
  at::Tensor final_scale;
};

// Receives the keys (rotated) and values of a layer: [rows, kv heads, head size] each.
using KeyValueSink = std::function<void(int64_t layer, const at::Tensor& keys, const at::Tensor& values)>;

// Final hidden states, normalised, of the outputs: [outputs, hidden]. `saved` (for the backward) and `sink` may be
// null.
at::Tensor TransformerForward(const ModelConfig& config, const Weights& weights, const PackedBatch& batch,
                              Activations* saved, const KeyValueSink& sink);

// Called with each ParameterSpec::layer once a backward pass adds nothing more to that layer's gradients (on a GPU:
// once the last addition is queued). Layers come in descending order, from the number of layers to kEmbedding; the
// head's gradient must be complete before the pass.
using LayerDone = std::function<void(int64_t layer)>;

// Adds to `gradients` the derivatives by all parameters but the head's, given the derivative by TransformerForward's
// result. Gradients of frozen parameters are undefined tensors, and are not computed. `done` may be empty. Consumes
// `saved`, layer by layer.
void TransformerBackward(const ModelConfig& config, const Weights& weights, const Weights& gradients,
                         const PackedBatch& batch, Activations& saved, const at::Tensor& d_hidden,
                         const LayerDone& done = {});

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_TRANSFORMER_H_
