// The transformer on a GPU: from token ids to final hidden states, and back to gradients. Computes the same as
// model/transformer.h with few kernels a layer: one product for q, k and v, flash attention over packed sequences, our
// kernels for norms, rotary positions and SwiGLU. Tests compare it with model/transformer.h. Used by gpu_scorer.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_TRANSFORMER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_TRANSFORMER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "policy_qwen/gpu_training/gpu_ops.h"
#include "policy_qwen/model/attention.h"
#include "policy_qwen/model/config.h"
#include "policy_qwen/model/parameters.h"
#include "policy_qwen/model/transformer.h"

namespace kgrpo::policy {

// Sequences packed without padding, on the device. Only the last rows of each ("outputs") are wanted, and the last
// layer computes nothing but keys and values for the others.
struct GpuBatch {
  at::Tensor ids;          // int64 [rows]
  at::Tensor output_rows;  // int64 [outputs]
  GpuAngles angles, output_angles;
  at::Tensor row_ends, output_ends;  // int32 [sequences + 1], cumulative, from 0: flash attention's
  int64_t longest = 0, most_outputs = 0;
  AttentionPlan plan, output_plan;  // for float32, which flash attention does not take: see model/attention.h
};

GpuBatch PackOnGpu(const ModelConfig& config, const std::vector<PackedSequence>& sequences, RotaryTable& rotary,
                   at::ScalarType dtype, at::Device device);

// Values of one layer's forward that its backward needs. If only `input` is kept, the backward computes the rest again.
// [queries]: all rows, or the outputs in the last layer.
struct GpuLayerActivations {
  at::Tensor input;  // [rows, hidden]
  at::Tensor attention_scale, attention_input;
  at::Tensor query_input;               // attention_input of the queries
  at::Tensor query_rows, key_rows;      // before their norms, compact; only with query_key_norm
  at::Tensor query_scale, key_scale;    // likewise
  at::Tensor query, key, value;         // [queries or rows, heads, head size], rotated
  at::Tensor attention_output;          // [queries, heads, head size]
  at::Tensor log_sums, random, unused;  // flash attention's
  AttentionActivations reference;       // float32
  at::Tensor middle;                    // [queries, hidden]: after the attention
  at::Tensor mlp_scale, mlp_input, gate_up, mlp_hidden;

  bool whole() const { return middle.defined(); }
};

struct GpuActivations {
  std::vector<GpuLayerActivations> layers;
  at::Tensor final_input, final_scale;
};

enum class Keep { kNothing, kLayerInputs, kAll };

class GpuTransformer {
 public:
  GpuTransformer(const ModelConfig& config, const GpuOps& ops) : config_(config), ops_(ops) {}

  // Final hidden states, normalised, of the outputs: [outputs, hidden].
  at::Tensor Forward(const Weights& weights, const GpuBatch& batch, Keep keep, GpuActivations* saved) const;

  // Adds to `gradients` the derivatives by all parameters but the head's, given the derivative by Forward's result.
  // Undefined gradients are of frozen parameters. Consumes `saved`, layer by layer. `done` may be empty.
  void Backward(const Weights& weights, const Weights& gradients, const GpuBatch& batch, GpuActivations& saved,
                const at::Tensor& d_hidden, const LayerDone& done) const;

  // Approximate bytes of activations that one row takes in all layers.
  int64_t BytesARow(Keep keep, at::ScalarType dtype) const;

 private:
  at::Tensor Layer(const LayerWeights& w, const GpuBatch& batch, bool is_last, const at::Tensor& x,
                   GpuLayerActivations& saved) const;
  void Project(const LayerWeights& w, const GpuBatch& batch, bool is_last, GpuLayerActivations& saved) const;
  void NormQueriesAndKeys(const LayerWeights& w, GpuLayerActivations& saved) const;
  void Attend(const GpuBatch& batch, bool is_last, GpuLayerActivations& saved) const;

  at::Tensor LayerBackward(const LayerWeights& w, const LayerWeights& gradients, const GpuBatch& batch, bool is_last,
                           GpuLayerActivations& saved, at::Tensor dx) const;
  AttentionGradients AttendBackward(const GpuBatch& batch, bool is_last, const GpuLayerActivations& saved,
                                    const at::Tensor& d_out) const;
  // The derivative by attention_input.
  at::Tensor ProjectBackward(const LayerWeights& w, const LayerWeights& gradients, const GpuBatch& batch, bool is_last,
                             const GpuLayerActivations& saved, const AttentionGradients& d) const;

  const ModelConfig& config_;
  const GpuOps& ops_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_TRANSFORMER_H_
