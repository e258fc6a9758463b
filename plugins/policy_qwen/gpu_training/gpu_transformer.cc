#include "policy_qwen/gpu_training/gpu_transformer.h"

#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

#include "policy_qwen/gpu_training/gpu_low_rank.h"
#include "policy_qwen/model/ops.h"
#include "policy_qwen/model/tensors.h"

namespace kgrpo::policy {
namespace {

constexpr float kForth = 1.0f, kBack = -1.0f;  // Rotate's directions

// The table's values, which generation and transformers round to the model's dtype, in float32.
GpuAngles AnglesAt(RotaryTable& rotary, const std::vector<int64_t>& positions, int64_t limit, at::Device device) {
  const RotaryAngles angles = rotary.At(IndexTensor(positions, device), limit);
  return {angles.cos.squeeze(1).narrow(1, 0, angles.sin.size(2)).to(at::kFloat).contiguous(),
          angles.sin.squeeze(1).to(at::kFloat).contiguous()};
}

// libtorch sums flash attention's derivatives by atomics unless told to be deterministic, which is a setting of the
// process.
class DeterministicScope {
 public:
  DeterministicScope()
      : before_(at::globalContext().deterministicAlgorithms()),
        warn_only_before_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        fill_before_(at::globalContext().deterministicFillUninitializedMemory()) {
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);  // with true it only warns
  }
  ~DeterministicScope() {
    at::globalContext().setDeterministicAlgorithms(before_, warn_only_before_);
    at::globalContext().setDeterministicFillUninitializedMemory(fill_before_);
  }
  DeterministicScope(const DeterministicScope&) = delete;
  DeterministicScope& operator=(const DeterministicScope&) = delete;

 private:
  bool before_, warn_only_before_, fill_before_;
};

}  // namespace

GpuBatch PackOnGpu(const ModelConfig& config, const std::vector<PackedSequence>& sequences, RotaryTable& rotary,
                   at::ScalarType dtype, at::Device device) {
  std::vector<int64_t> ids, positions, output_rows, output_positions, lengths, output_counts;
  std::vector<int64_t> row_ends = {0}, output_ends = {0};
  GpuBatch batch;
  for (const PackedSequence& sequence : sequences) {
    const int64_t length = static_cast<int64_t>(sequence.ids.size());
    const int64_t first_output = length - sequence.output_count;
    for (int64_t position = 0; position < length; ++position) {
      if (position >= first_output) {
        output_rows.push_back(static_cast<int64_t>(ids.size()));
        output_positions.push_back(position);
      }
      ids.push_back(sequence.ids[static_cast<size_t>(position)]);
      positions.push_back(position);
    }
    lengths.push_back(length);
    output_counts.push_back(sequence.output_count);
    row_ends.push_back(row_ends.back() + length);
    output_ends.push_back(output_ends.back() + sequence.output_count);
    batch.longest = std::max(batch.longest, length);
    batch.most_outputs = std::max(batch.most_outputs, sequence.output_count);
  }
  batch.ids = IndexTensor(ids, device);
  batch.output_rows = IndexTensor(output_rows, device);
  batch.angles = AnglesAt(rotary, positions, batch.longest, device);
  batch.output_angles = AnglesAt(rotary, output_positions, batch.longest, device);
  if (dtype == at::kFloat) {
    if (config.layer_count > 1) batch.plan = MakeAttentionPlan(config, lengths, lengths, device);
    batch.output_plan = MakeAttentionPlan(config, lengths, output_counts, device);
  } else {
    batch.row_ends = IndexTensor(row_ends, device).to(at::kInt);
    batch.output_ends = IndexTensor(output_ends, device).to(at::kInt);
  }
  return batch;
}

// Sets query_input, query, key and value.
void GpuTransformer::Project(const LayerWeights& w, const GpuBatch& batch, bool is_last,
                             GpuLayerActivations& saved) const {
  const int64_t query_size = config_.query_size(), kv_size = config_.kv_size(), size = config_.head_size;
  at::Tensor query, key_value;
  if (is_last) {
    saved.query_input = saved.attention_input.index_select(0, batch.output_rows);
    query = Linear(saved.query_input, w.query, w.query_bias);
    key_value = Linear(saved.attention_input, w.key_value, w.key_value_bias);
  } else {
    saved.query_input = saved.attention_input;
    const at::Tensor all = Linear(saved.attention_input, w.query_key_value, w.query_key_value_bias);
    query = all.narrow(1, 0, query_size);
    key_value = all.narrow(1, query_size, 2 * kv_size);
  }
  const at::Tensor key = key_value.narrow(1, 0, kv_size), value = key_value.narrow(1, kv_size, kv_size);
  AddLowRankOnGpu(query, saved.query_input, w.adapter.query);
  AddLowRankOnGpu(key, saved.attention_input, w.adapter.key);
  AddLowRankOnGpu(value, saved.attention_input, w.adapter.value);
  saved.query = query.unflatten(1, {config_.head_count, size});
  saved.key = key.unflatten(1, {config_.kv_head_count, size});
  saved.value = value.unflatten(1, {config_.kv_head_count, size});
  if (config_.query_key_norm) NormQueriesAndKeys(w, saved);
  ops_.Rotate(saved.query, saved.query, is_last ? batch.output_angles : batch.angles, kForth);
  ops_.Rotate(saved.key, saved.key, batch.angles, kForth);
}

void GpuTransformer::NormQueriesAndKeys(const LayerWeights& w, GpuLayerActivations& saved) const {
  saved.query_rows = saved.query.contiguous();
  saved.key_rows = saved.key.contiguous();
  GpuOps::Normed query = ops_.RmsNorm(saved.query_rows, w.query_norm, config_.norm_epsilon);
  GpuOps::Normed key = ops_.RmsNorm(saved.key_rows, w.key_norm, config_.norm_epsilon);
  saved.query = query.rows;
  saved.query_scale = query.scale;
  saved.key = key.rows;
  saved.key_scale = key.scale;
}

void GpuTransformer::Attend(const GpuBatch& batch, bool is_last, GpuLayerActivations& saved) const {
  if (saved.query.scalar_type() == at::kFloat) {
    saved.attention_output = Attention(config_, is_last ? batch.output_plan : batch.plan, saved.query.contiguous(),
                                       saved.key.contiguous(), saved.value.contiguous(), &saved.reference)
                                 .view({-1, config_.head_count, config_.head_size});
    return;
  }
  // Causal from the last key on: query r of q sees the keys up to k - q + r.
  std::tie(saved.attention_output, saved.log_sums, saved.random, saved.unused, std::ignore) =
      at::_flash_attention_forward(saved.query, saved.key, saved.value, is_last ? batch.output_ends : batch.row_ends,
                                   batch.row_ends, is_last ? batch.most_outputs : batch.longest, batch.longest,
                                   /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false,
                                   1.0 / std::sqrt(static_cast<double>(config_.head_size)));
}

at::Tensor GpuTransformer::Layer(const LayerWeights& w, const GpuBatch& batch, bool is_last, const at::Tensor& x,
                                 GpuLayerActivations& saved) const {
  GpuOps::Normed normed = ops_.RmsNorm(x, w.attention_norm, config_.norm_epsilon);
  saved.attention_input = std::move(normed.rows);
  saved.attention_scale = std::move(normed.scale);
  Project(w, batch, is_last, saved);
  Attend(batch, is_last, saved);
  const at::Tensor residual = is_last ? x.index_select(0, batch.output_rows) : x;
  const at::Tensor attention = saved.attention_output.view({-1, config_.query_size()});
  saved.middle = LinearAdd(residual, attention, w.output, w.output_bias);
  AddLowRankOnGpu(saved.middle, attention, w.adapter.output);
  normed = ops_.RmsNorm(saved.middle, w.mlp_norm, config_.norm_epsilon);
  saved.mlp_input = std::move(normed.rows);
  saved.mlp_scale = std::move(normed.scale);
  saved.gate_up = Linear(saved.mlp_input, w.gate_up, w.gate_up_bias);
  const int64_t intermediate = config_.intermediate_size;
  AddLowRankOnGpu(saved.gate_up.narrow(1, 0, intermediate), saved.mlp_input, w.adapter.gate);
  AddLowRankOnGpu(saved.gate_up.narrow(1, intermediate, intermediate), saved.mlp_input, w.adapter.up);
  saved.mlp_hidden = ops_.SwiGlu(saved.gate_up);
  const at::Tensor next = LinearAdd(saved.middle, saved.mlp_hidden, w.down, w.down_bias);
  AddLowRankOnGpu(next, saved.mlp_hidden, w.adapter.down);
  return next;
}

at::Tensor GpuTransformer::Forward(const Weights& weights, const GpuBatch& batch, Keep keep,
                                   GpuActivations* saved) const {
  at::Tensor x = weights.embedding.index_select(0, batch.ids);
  if (keep != Keep::kNothing) saved->layers.resize(weights.layers.size());
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    GpuLayerActivations layer;
    const at::Tensor next = Layer(weights.layers[i], batch, i + 1 == weights.layers.size(), x, layer);
    if (keep == Keep::kAll) saved->layers[i] = std::move(layer);
    if (keep != Keep::kNothing) saved->layers[i].input = x;
    x = next;
  }
  GpuOps::Normed normed = ops_.RmsNorm(x, weights.final_norm, config_.norm_epsilon);
  if (keep != Keep::kNothing) {
    saved->final_input = x;
    saved->final_scale = normed.scale;
  }
  return normed.rows;
}

AttentionGradients GpuTransformer::AttendBackward(const GpuBatch& batch, bool is_last, const GpuLayerActivations& saved,
                                                  const at::Tensor& d_out) const {
  if (saved.query.scalar_type() == at::kFloat) {
    return AttentionBackward(config_, is_last ? batch.output_plan : batch.plan, saved.reference,
                             d_out.view({-1, config_.query_size()}));
  }
  const DeterministicScope deterministic;
  AttentionGradients d;
  std::tie(d.q, d.k, d.v) = at::_flash_attention_backward(
      d_out, saved.query, saved.key, saved.value, saved.attention_output, saved.log_sums,
      is_last ? batch.output_ends : batch.row_ends, batch.row_ends, is_last ? batch.most_outputs : batch.longest,
      batch.longest, /*dropout_p=*/0.0, /*is_causal=*/true, saved.random, saved.unused,
      1.0 / std::sqrt(static_cast<double>(config_.head_size)));
  return d;
}

at::Tensor GpuTransformer::ProjectBackward(const LayerWeights& w, const LayerWeights& gradients, const GpuBatch& batch,
                                           bool is_last, const GpuLayerActivations& saved,
                                           const AttentionGradients& d) const {
  const int64_t heads = config_.head_count, kv_heads = config_.kv_head_count, size = config_.head_size;
  const int64_t rows = saved.attention_input.size(0);
  const auto options = saved.attention_input.options();
  // Derivatives of the projections' results: slices of one matrix where one product made them all.
  at::Tensor d_all, d_query, d_key_value;
  if (is_last) {
    d_query = at::empty({d.q.size(0), heads, size}, options);
    d_key_value = at::empty({rows, 2 * kv_heads, size}, options);
  } else {
    d_all = at::empty({rows, heads + 2 * kv_heads, size}, options);
    d_query = d_all.narrow(1, 0, heads);
    d_key_value = d_all.narrow(1, heads, 2 * kv_heads);
  }
  const at::Tensor d_key = d_key_value.narrow(1, 0, kv_heads);
  d_key_value.narrow(1, kv_heads, kv_heads).copy_(d.v);
  const GpuAngles& query_angles = is_last ? batch.output_angles : batch.angles;
  if (config_.query_key_norm) {
    const at::Tensor q = d.q.contiguous(), k = d.k.contiguous();
    ops_.Rotate(q, q, query_angles, kBack);
    ops_.Rotate(k, k, batch.angles, kBack);
    d_query.copy_(ops_.RmsNormBackward(q, saved.query_rows, w.query_norm, saved.query_scale, gradients.query_norm, {}));
    d_key.copy_(ops_.RmsNormBackward(k, saved.key_rows, w.key_norm, saved.key_scale, gradients.key_norm, {}));
  } else {
    ops_.Rotate(d.q, d_query, query_angles, kBack);
    ops_.Rotate(d.k, d_key, batch.angles, kBack);
  }
  d_query = d_query.flatten(1);
  d_key_value = d_key_value.flatten(1);
  const LayerAdapter &a = w.adapter, &g = gradients.adapter;
  at::Tensor d_rows;
  if (is_last) {
    ops_.LinearBackwardParameters(d_query, saved.query_input, gradients.query, gradients.query_bias);
    ops_.LinearBackwardParameters(d_key_value, saved.attention_input, gradients.key_value, gradients.key_value_bias);
    const at::Tensor d_query_rows = at::mm(d_query, w.query);
    LowRankBackwardOnGpu(d_query, saved.query_input, a.query, g.query, d_query_rows);
    d_rows = at::mm(d_key_value, w.key_value);
    AddRows(d_rows, batch.output_rows, d_query_rows);
  } else {
    d_all = d_all.flatten(1);
    ops_.LinearBackwardParameters(d_all, saved.attention_input, gradients.query_key_value,
                                  gradients.query_key_value_bias);
    d_rows = at::mm(d_all, w.query_key_value);
    LowRankBackwardOnGpu(d_query, saved.query_input, a.query, g.query, d_rows);
  }
  const int64_t kv_size = config_.kv_size();
  LowRankBackwardOnGpu(d_key_value.narrow(1, 0, kv_size), saved.attention_input, a.key, g.key, d_rows);
  LowRankBackwardOnGpu(d_key_value.narrow(1, kv_size, kv_size), saved.attention_input, a.value, g.value, d_rows);
  return d_rows;
}

at::Tensor GpuTransformer::LayerBackward(const LayerWeights& w, const LayerWeights& gradients, const GpuBatch& batch,
                                         bool is_last, GpuLayerActivations& saved, at::Tensor dx) const {
  // The MLP: x = middle + down(swiglu(gate_up(norm(middle)))).
  const LayerAdapter &a = w.adapter, &g = gradients.adapter;
  ops_.LinearBackwardParameters(dx, saved.mlp_hidden, gradients.down, gradients.down_bias);
  const at::Tensor d_mlp_hidden = at::mm(dx, w.down);
  LowRankBackwardOnGpu(dx, saved.mlp_hidden, a.down, g.down, d_mlp_hidden);
  const at::Tensor d_gate_up = ops_.SwiGluBackward(d_mlp_hidden, saved.gate_up);
  ops_.LinearBackwardParameters(d_gate_up, saved.mlp_input, gradients.gate_up, gradients.gate_up_bias);
  const at::Tensor d_mlp_input = at::mm(d_gate_up, w.gate_up);
  const int64_t intermediate = config_.intermediate_size;
  LowRankBackwardOnGpu(d_gate_up.narrow(1, 0, intermediate), saved.mlp_input, a.gate, g.gate, d_mlp_input);
  LowRankBackwardOnGpu(d_gate_up.narrow(1, intermediate, intermediate), saved.mlp_input, a.up, g.up, d_mlp_input);
  dx = ops_.RmsNormBackward(d_mlp_input, saved.middle, w.mlp_norm, saved.mlp_scale, gradients.mlp_norm, dx);

  // The attention: middle = input + output(attention(norm(input))).
  const at::Tensor attention = saved.attention_output.view({-1, config_.query_size()});
  ops_.LinearBackwardParameters(dx, attention, gradients.output, gradients.output_bias);
  const at::Tensor d_attention = at::mm(dx, w.output);
  LowRankBackwardOnGpu(dx, attention, a.output, g.output, d_attention);
  const AttentionGradients d =
      AttendBackward(batch, is_last, saved, d_attention.view({-1, config_.head_count, config_.head_size}));
  const at::Tensor d_rows = ProjectBackward(w, gradients, batch, is_last, saved, d);
  at::Tensor d_input = ops_.RmsNormBackward(d_rows, saved.input, w.attention_norm, saved.attention_scale,
                                            gradients.attention_norm, is_last ? at::Tensor() : dx);
  if (is_last) AddRows(d_input, batch.output_rows, dx);
  return d_input;
}

void GpuTransformer::Backward(const Weights& weights, const Weights& gradients, const GpuBatch& batch,
                              GpuActivations& saved, const at::Tensor& d_hidden, const LayerDone& done) const {
  at::Tensor dx = ops_.RmsNormBackward(d_hidden, saved.final_input, weights.final_norm, saved.final_scale,
                                       gradients.final_norm, {});
  if (done) done(config_.layer_count);
  for (size_t i = weights.layers.size(); i-- > 0;) {
    GpuLayerActivations layer = std::move(saved.layers[i]);
    saved.layers[i] = {};  // frees memory as the pass goes back
    const bool is_last = i + 1 == weights.layers.size();
    if (!layer.whole()) Layer(weights.layers[i], batch, is_last, layer.input, layer);
    dx = LayerBackward(weights.layers[i], gradients.layers[i], batch, is_last, layer, dx);
    if (done) done(static_cast<int64_t>(i));
  }
  if (gradients.embedding.defined()) AddRows(gradients.embedding, batch.ids, dx);
  if (done) done(ParameterSpec::kEmbedding);
}

int64_t GpuTransformer::BytesARow(Keep keep, at::ScalarType dtype) const {
  int64_t elements = config_.hidden_size;  // the layer's input
  if (keep == Keep::kAll) {
    const int64_t projected = config_.query_size() + 2 * config_.kv_size();
    elements += 3 * config_.hidden_size + projected * (config_.query_key_norm ? 2 : 1) + config_.query_size() +
                3 * config_.intermediate_size;
  }
  return keep == Keep::kNothing ? 0 : elements * config_.layer_count * static_cast<int64_t>(c10::elementSize(dtype));
}

}  // namespace kgrpo::policy
