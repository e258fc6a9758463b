#include "policy_qwen/model/transformer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kgrpo::policy {

RotaryTable::RotaryTable(const ModelConfig& config, at::ScalarType dtype, at::Device device)
    : frequencies_(RopeFrequencies(config)),
      attention_factor_(static_cast<float>(config.rope.attention_factor)),
      dtype_(dtype),
      device_(device) {}

// Computes the entries one by one with the C library's functions: libtorch's vectorised ones may round an entry
// differently in a table of another size.
void RotaryTable::Grow(int64_t positions) {
  const int64_t half = static_cast<int64_t>(frequencies_.size());
  const auto options = at::TensorOptions().dtype(at::kFloat);
  at::Tensor cos = at::empty({positions, 2 * half}, options), sin = at::empty({positions, half}, options);
  float* cosines = cos.mutable_data_ptr<float>();
  float* sines = sin.mutable_data_ptr<float>();
  for (int64_t position = 0; position < positions; ++position, cosines += 2 * half, sines += half) {
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies_[static_cast<size_t>(i)];
      cosines[i] = cosines[half + i] = std::cos(angle) * attention_factor_;
      sines[i] = std::sin(angle) * attention_factor_;
    }
  }
  cos_ = cos.unsqueeze(1).to(device_, dtype_);
  sin_ = sin.unsqueeze(1).to(device_, dtype_);
}

RotaryAngles RotaryTable::At(const at::Tensor& positions, int64_t limit) {
  if (!cos_.defined() || cos_.size(0) < limit) {
    Grow(std::max<int64_t>({limit, 256, cos_.defined() ? 2 * cos_.size(0) : 0}));
  }
  return {cos_.index_select(0, positions), sin_.index_select(0, positions)};
}

PackedBatch Transformer::Pack(const std::vector<PackedSequence>& sequences, RotaryTable& rotary) const {
  std::vector<int64_t> ids, positions, output_rows, output_positions, lengths, output_counts;
  int64_t longest = 0;
  for (const PackedSequence& sequence : sequences) {
    const int64_t length = static_cast<int64_t>(sequence.ids.size());
    for (int64_t position = 0; position < length; ++position) {
      if (position >= length - sequence.output_count) {
        output_rows.push_back(static_cast<int64_t>(ids.size()));
        output_positions.push_back(position);
      }
      ids.push_back(sequence.ids[static_cast<size_t>(position)]);
      positions.push_back(position);
    }
    lengths.push_back(length);
    output_counts.push_back(sequence.output_count);
    longest = std::max(longest, length);
  }
  const at::Device device = rotary.device();
  const bool flash = ops_.UsesFlashAttention(config_, rotary.dtype());
  const auto plan = [&](const std::vector<int64_t>& query_counts) {
    return flash ? MakeFlashAttentionPlan(lengths, query_counts, device)
                 : MakeAttentionPlan(config_, lengths, query_counts, device);
  };
  PackedBatch batch;
  batch.ids = IndexTensor(ids, device);
  batch.output_rows = IndexTensor(output_rows, device);
  batch.angles = ops_.Angles(rotary.At(IndexTensor(positions, device), longest));
  batch.output_angles = ops_.Angles(rotary.At(IndexTensor(output_positions, device), longest));
  if (config_.layer_count > 1) batch.plan = plan(lengths);
  batch.output_plan = plan(output_counts);
  return batch;
}

at::Tensor Transformer::Norm(const at::Tensor& x, const at::Tensor& weight, at::Tensor& scale) const {
  return ops_.RmsNorm(x, weight, config_.norm_epsilon, scale);
}

Transformer::Projected Transformer::Project(const LayerWeights& w, const PackedBatch& batch, bool is_last,
                                            LayerActivations& saved) const {
  const int64_t query_size = config_.query_size(), kv_size = config_.kv_size(), size = config_.head_size;
  const at::Tensor& rows = saved.attention_input;
  saved.query_input = is_last ? GatherRows(rows, batch.output_rows) : rows;
  at::Tensor query, key_value;
  if (is_last || !ops_.JoinsProjections()) {
    query = Linear(saved.query_input, w.query, w.query_bias);
    key_value = Linear(rows, w.key_value, w.key_value_bias);
  } else {
    const at::Tensor all = Linear(rows, w.query_key_value, w.query_key_value_bias);
    query = all.narrow(1, 0, query_size);
    key_value = all.narrow(1, query_size, 2 * kv_size);
  }
  at::Tensor key = key_value.narrow(1, 0, kv_size), value = key_value.narrow(1, kv_size, kv_size);
  AddLowRank(query, saved.query_input, w.adapter.query);
  AddLowRank(key, rows, w.adapter.key);
  AddLowRank(value, rows, w.adapter.value);
  query = query.unflatten(1, {config_.head_count, size});
  key = key.unflatten(1, {config_.kv_head_count, size});
  value = value.unflatten(1, {config_.kv_head_count, size});
  if (config_.query_key_norm) {
    saved.query = query.contiguous();
    saved.key = key.contiguous();
    query = Norm(saved.query, w.query_norm, saved.query_scale);
    key = Norm(saved.key, w.key_norm, saved.key_scale);
  }
  return {ops_.Rotate(query, is_last ? batch.output_angles : batch.angles), ops_.Rotate(key, batch.angles), value};
}

at::Tensor Transformer::Layer(const Weights& weights, int64_t index, const PackedBatch& batch, const at::Tensor& x,
                              LayerActivations& saved, bool keeps, const KeyValueSink& sink) const {
  const LayerWeights& w = weights.layers[static_cast<size_t>(index)];
  const bool is_last = index + 1 == config_.layer_count;
  saved.attention_input = Norm(x, w.attention_norm, saved.attention_scale);
  {
    const Projected qkv = Project(w, batch, is_last, saved);
    if (sink) sink(index, qkv.key, qkv.value);
    saved.attention_output = ops_.Attention(config_, is_last ? batch.output_plan : batch.plan, qkv.query, qkv.key,
                                            qkv.value, keeps ? &saved.attention : nullptr);
  }
  const at::Tensor residual = is_last ? GatherRows(x, batch.output_rows) : x;
  saved.middle = LinearAdd(residual, saved.attention_output, w.output, w.output_bias);
  AddLowRank(saved.middle, saved.attention_output, w.adapter.output);
  saved.mlp_input = Norm(saved.middle, w.mlp_norm, saved.mlp_scale);
  saved.gate_up = Linear(saved.mlp_input, w.gate_up, w.gate_up_bias);
  const int64_t size = config_.intermediate_size;
  AddLowRank(saved.gate_up.narrow(1, 0, size), saved.mlp_input, w.adapter.gate);
  AddLowRank(saved.gate_up.narrow(1, size, size), saved.mlp_input, w.adapter.up);
  saved.mlp_hidden = ops_.SwiGlu(saved.gate_up);
  at::Tensor next = LinearAdd(saved.middle, saved.mlp_hidden, w.down, w.down_bias);
  AddLowRank(next, saved.mlp_hidden, w.adapter.down);
  return next;
}

at::Tensor Transformer::Forward(const Weights& weights, const PackedBatch& batch, Activations* saved,
                                const KeyValueSink& sink) const {
  at::Tensor x = weights.embedding.is_cpu() ? GatherRows(weights.embedding, batch.ids)
                                            : weights.embedding.index_select(0, batch.ids);  // ids are never -1
  const bool keeps = saved != nullptr && !saved->inputs_only;
  if (saved != nullptr) saved->layers.resize(weights.layers.size());
  for (int64_t i = 0; i < config_.layer_count; ++i) {
    LayerActivations layer;
    at::Tensor next = Layer(weights, i, batch, x, layer, keeps, sink);
    if (saved != nullptr) {
      LayerActivations& kept = saved->layers[static_cast<size_t>(i)];
      if (keeps) kept = std::move(layer);
      kept.input = x;
    }
    x = std::move(next);
  }
  at::Tensor scale;
  at::Tensor hidden = Norm(x, weights.final_norm, scale);
  if (saved != nullptr) {
    saved->final_input = x;
    saved->final_scale = scale;
  }
  return hidden;
}

at::Tensor Transformer::ProjectBackward(const LayerWeights& w, const LayerWeights& gradients, const PackedBatch& batch,
                                        bool is_last, const LayerActivations& saved,
                                        const AttentionGradients& d) const {
  const int64_t heads = config_.head_count, kv_heads = config_.kv_head_count, size = config_.head_size;
  const at::Tensor& rows = saved.attention_input;
  const bool joined = !is_last && ops_.JoinsProjections();
  // Derivatives of the projections' results: slices of one matrix if one product made them all.
  at::Tensor d_all, d_query, d_key_value;
  if (joined) {
    d_all = at::empty({rows.size(0), heads + 2 * kv_heads, size}, rows.options());
    d_query = d_all.narrow(1, 0, heads);
    d_key_value = d_all.narrow(1, heads, 2 * kv_heads);
  } else {
    d_query = at::empty({d.q.size(0), heads, size}, rows.options());
    d_key_value = at::empty({rows.size(0), 2 * kv_heads, size}, rows.options());
  }
  at::Tensor d_key = d_key_value.narrow(1, 0, kv_heads);
  d_key_value.narrow(1, kv_heads, kv_heads).copy_(d.v);
  const RotaryAngles& query_angles = is_last ? batch.output_angles : batch.angles;
  if (config_.query_key_norm) {
    const at::Tensor q = at::empty(d.q.sizes(), rows.options()), k = at::empty(d.k.sizes(), rows.options());
    ops_.RotateBackward(d.q, query_angles, q);
    ops_.RotateBackward(d.k, batch.angles, k);
    d_query.copy_(ops_.RmsNormBackward(q, saved.query, w.query_norm, saved.query_scale, gradients.query_norm, {}));
    d_key.copy_(ops_.RmsNormBackward(k, saved.key, w.key_norm, saved.key_scale, gradients.key_norm, {}));
  } else {
    ops_.RotateBackward(d.q, query_angles, d_query);
    ops_.RotateBackward(d.k, batch.angles, d_key);
  }
  d_query = d_query.flatten(1);
  d_key_value = d_key_value.flatten(1);
  at::Tensor d_rows, d_query_rows;  // by attention_input; of the queries if they have a product of their own
  if (joined) {
    d_all = d_all.flatten(1);
    LinearBackwardParameters(d_all, rows, gradients.query_key_value, gradients.query_key_value_bias);
    d_rows = d_query_rows = at::mm(d_all, w.query_key_value);
  } else {
    LinearBackwardParameters(d_query, saved.query_input, gradients.query, gradients.query_bias);
    LinearBackwardParameters(d_key_value, rows, gradients.key_value, gradients.key_value_bias);
    d_query_rows = at::mm(d_query, w.query);
    d_rows = at::mm(d_key_value, w.key_value);
  }
  const LayerAdapter &a = w.adapter, &g = gradients.adapter;
  const int64_t kv_size = config_.kv_size();
  LowRankBackward(d_query, saved.query_input, a.query, g.query, d_query_rows);
  LowRankBackward(d_key_value.narrow(1, 0, kv_size), rows, a.key, g.key, d_rows);
  LowRankBackward(d_key_value.narrow(1, kv_size, kv_size), rows, a.value, g.value, d_rows);
  if (is_last) {
    AddRows(d_rows, batch.output_rows, d_query_rows);
  } else if (!joined) {
    d_rows.add_(d_query_rows);
  }
  return d_rows;
}

at::Tensor Transformer::LayerBackward(const LayerWeights& w, const LayerWeights& gradients, const PackedBatch& batch,
                                      bool is_last, LayerActivations& saved, at::Tensor dx) const {
  // The MLP: x = middle + down(swiglu(gate_up(norm(middle)))).
  const LayerAdapter &a = w.adapter, &g = gradients.adapter;
  LinearBackwardParameters(dx, saved.mlp_hidden, gradients.down, gradients.down_bias);
  const at::Tensor d_mlp_hidden = at::mm(dx, w.down);
  LowRankBackward(dx, saved.mlp_hidden, a.down, g.down, d_mlp_hidden);
  const at::Tensor d_gate_up = ops_.SwiGluBackward(d_mlp_hidden, saved.gate_up);
  LinearBackwardParameters(d_gate_up, saved.mlp_input, gradients.gate_up, gradients.gate_up_bias);
  const at::Tensor d_mlp_input = at::mm(d_gate_up, w.gate_up);
  const int64_t size = config_.intermediate_size;
  LowRankBackward(d_gate_up.narrow(1, 0, size), saved.mlp_input, a.gate, g.gate, d_mlp_input);
  LowRankBackward(d_gate_up.narrow(1, size, size), saved.mlp_input, a.up, g.up, d_mlp_input);
  dx = ops_.RmsNormBackward(d_mlp_input, saved.middle, w.mlp_norm, saved.mlp_scale, gradients.mlp_norm, dx);

  // The attention: middle = input + output(attention(norm(input))).
  LinearBackwardParameters(dx, saved.attention_output, gradients.output, gradients.output_bias);
  const at::Tensor d_attention = at::mm(dx, w.output);
  LowRankBackward(dx, saved.attention_output, a.output, g.output, d_attention);
  const AttentionGradients d =
      ops_.AttentionBackward(config_, is_last ? batch.output_plan : batch.plan, saved.attention, d_attention);
  const at::Tensor d_rows = ProjectBackward(w, gradients, batch, is_last, saved, d);
  at::Tensor d_input = ops_.RmsNormBackward(d_rows, saved.input, w.attention_norm, saved.attention_scale,
                                            gradients.attention_norm, is_last ? at::Tensor() : dx);
  if (is_last) AddRows(d_input, batch.output_rows, dx);
  return d_input;
}

void Transformer::Backward(const Weights& weights, const Weights& gradients, const PackedBatch& batch,
                           Activations& saved, const at::Tensor& d_hidden, const LayerDone& done) const {
  at::Tensor dx = ops_.RmsNormBackward(d_hidden, saved.final_input, weights.final_norm, saved.final_scale,
                                       gradients.final_norm, {});
  if (done) done(config_.layer_count);
  for (int64_t i = config_.layer_count - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    LayerActivations layer = std::exchange(saved.layers[at], {});  // frees memory as the pass goes back
    if (!layer.whole()) Layer(weights, i, batch, layer.input, layer, true, {});
    dx = LayerBackward(weights.layers[at], gradients.layers[at], batch, i + 1 == config_.layer_count, layer, dx);
    if (done) done(i);
  }
  if (gradients.embedding.defined()) AddRows(gradients.embedding, batch.ids, dx);
  if (done) done(ParameterSpec::kEmbedding);
}

}  // namespace kgrpo::policy
