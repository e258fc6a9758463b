#include "policy_qwen/model/transformer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

#include "policy_qwen/model/tensors.h"

namespace kgrpo::policy {
namespace {

struct QueryKeyValue {
  at::Tensor query;       // [queries, heads, head size], rotated
  at::Tensor key, value;  // [rows, kv heads, head size], keys rotated
};

// `rows` are the normalised inputs, `query_rows` those of the queries.
QueryKeyValue Project(const ModelConfig& config, const LayerWeights& w, const PackedBatch& batch, bool is_last,
                      const at::Tensor& rows, const at::Tensor& query_rows, LayerActivations* saved) {
  const int64_t kv_heads = config.kv_head_count;
  const int64_t kv_size = config.kv_size();
  at::Tensor query = Linear(query_rows, w.query, w.query_bias);
  AddLowRank(query, query_rows, w.adapter.query);
  query = query.view({-1, config.head_count, config.head_size});
  at::Tensor key_value = Linear(rows, w.key_value, w.key_value_bias);
  AddLowRank(key_value.narrow(1, 0, kv_size), rows, w.adapter.key);
  AddLowRank(key_value.narrow(1, kv_size, kv_size), rows, w.adapter.value);
  key_value = key_value.view({-1, 2 * kv_heads, config.head_size});
  at::Tensor key = key_value.narrow(1, 0, kv_heads);
  if (config.query_key_norm) {
    key = key.contiguous();
    at::Tensor query_scale, key_scale;
    at::Tensor normed_query = RmsNorm(query, w.query_norm, config.norm_epsilon, &query_scale);
    at::Tensor normed_key = RmsNorm(key, w.key_norm, config.norm_epsilon, &key_scale);
    if (saved != nullptr) {
      saved->query = query;
      saved->key = key;
      saved->query_scale = query_scale;
      saved->key_scale = key_scale;
    }
    query = normed_query;
    key = normed_key;
  }
  return {Rotate(query, is_last ? batch.output_angles : batch.angles), Rotate(key, batch.angles),
          key_value.narrow(1, kv_heads, kv_heads).contiguous()};
}

struct ProjectionGradients {
  at::Tensor query_rows;  // derivative by Project's query_rows
  at::Tensor rows;        // derivative by its rows
};

ProjectionGradients ProjectBackward(const ModelConfig& config, const LayerWeights& w, const LayerWeights& gradients,
                                    const PackedBatch& batch, bool is_last, const LayerActivations& saved,
                                    const AttentionGradients& d) {
  at::Tensor d_query = RotateBackward(d.q, is_last ? batch.output_angles : batch.angles);
  at::Tensor d_key = RotateBackward(d.k, batch.angles);
  if (config.query_key_norm) {
    d_query = RmsNormBackward(d_query, saved.query, w.query_norm, saved.query_scale, gradients.query_norm);
    d_key = RmsNormBackward(d_key, saved.key, w.key_norm, saved.key_scale, gradients.key_norm);
  }
  d_query = d_query.view({-1, config.query_size()});
  const at::Tensor d_key_value = at::cat({d_key, d.v}, 1).view({-1, 2 * config.kv_size()});
  LinearBackwardParameters(d_query, saved.query_input, gradients.query, gradients.query_bias);
  LinearBackwardParameters(d_key_value, saved.attention_input, gradients.key_value, gradients.key_value_bias);
  const ProjectionGradients result = {at::mm(d_query, w.query), at::mm(d_key_value, w.key_value)};
  const int64_t kv_size = config.kv_size();
  LowRankBackward(d_query, saved.query_input, w.adapter.query, gradients.adapter.query, result.query_rows);
  LowRankBackward(d_key_value.narrow(1, 0, kv_size), saved.attention_input, w.adapter.key, gradients.adapter.key,
                  result.rows);
  LowRankBackward(d_key_value.narrow(1, kv_size, kv_size), saved.attention_input, w.adapter.value,
                  gradients.adapter.value, result.rows);
  return result;
}

}  // namespace

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

PackedBatch PackSequences(const ModelConfig& config, const std::vector<PackedSequence>& sequences, RotaryTable& rotary,
                          at::Device device) {
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
  PackedBatch batch;
  batch.ids = IndexTensor(ids, device);
  batch.output_rows = IndexTensor(output_rows, device);
  batch.angles = rotary.At(IndexTensor(positions, device), longest);
  batch.output_angles = rotary.At(IndexTensor(output_positions, device), longest);
  if (config.layer_count > 1) batch.plan = MakeAttentionPlan(config, lengths, lengths, device);
  batch.output_plan = MakeAttentionPlan(config, lengths, output_counts, device);
  return batch;
}

at::Tensor TransformerForward(const ModelConfig& config, const Weights& weights, const PackedBatch& batch,
                              Activations* saved, const KeyValueSink& sink) {
  at::Tensor x = GatherRows(weights.embedding, batch.ids);
  if (saved != nullptr) saved->layers.resize(weights.layers.size());
  for (int64_t i = 0; i < config.layer_count; ++i) {
    const LayerWeights& w = weights.layers[static_cast<size_t>(i)];
    LayerActivations* layer = saved != nullptr ? &saved->layers[static_cast<size_t>(i)] : nullptr;
    const bool is_last = i + 1 == config.layer_count;

    at::Tensor attention_scale, mlp_scale;
    const at::Tensor rows = RmsNorm(x, w.attention_norm, config.norm_epsilon, &attention_scale);
    const at::Tensor query_rows = is_last ? GatherRows(rows, batch.output_rows) : rows;
    const at::Tensor residual = is_last ? GatherRows(x, batch.output_rows) : x;
    const QueryKeyValue qkv = Project(config, w, batch, is_last, rows, query_rows, layer);
    if (sink) sink(i, qkv.key, qkv.value);
    const at::Tensor attention = Attention(config, is_last ? batch.output_plan : batch.plan, qkv.query, qkv.key,
                                           qkv.value, layer != nullptr ? &layer->attention : nullptr);
    const at::Tensor middle = LinearAdd(residual, attention, w.output, w.output_bias);
    AddLowRank(middle, attention, w.adapter.output);
    const at::Tensor mlp_input = RmsNorm(middle, w.mlp_norm, config.norm_epsilon, &mlp_scale);
    const at::Tensor gate_up = Linear(mlp_input, w.gate_up, w.gate_up_bias);
    AddLowRank(gate_up.narrow(1, 0, config.intermediate_size), mlp_input, w.adapter.gate);
    AddLowRank(gate_up.narrow(1, config.intermediate_size, config.intermediate_size), mlp_input, w.adapter.up);
    const at::Tensor mlp_hidden = SwiGlu(gate_up);
    if (layer != nullptr) {
      layer->input = x;
      layer->attention_scale = attention_scale;
      layer->attention_input = rows;
      layer->query_input = query_rows;
      layer->attention_output = attention;
      layer->middle = middle;
      layer->mlp_scale = mlp_scale;
      layer->mlp_input = mlp_input;
      layer->gate_up = gate_up;
      layer->mlp_hidden = mlp_hidden;
    }
    x = LinearAdd(middle, mlp_hidden, w.down, w.down_bias);
    AddLowRank(x, mlp_hidden, w.adapter.down);
  }
  at::Tensor final_scale;
  at::Tensor hidden = RmsNorm(x, weights.final_norm, config.norm_epsilon, &final_scale);
  if (saved != nullptr) {
    saved->final_input = x;
    saved->final_scale = final_scale;
  }
  return hidden;
}

void TransformerBackward(const ModelConfig& config, const Weights& weights, const Weights& gradients,
                         const PackedBatch& batch, Activations& saved, const at::Tensor& d_hidden,
                         const LayerDone& done) {
  at::Tensor dx =
      RmsNormBackward(d_hidden, saved.final_input, weights.final_norm, saved.final_scale, gradients.final_norm);
  if (done) done(config.layer_count);
  for (int64_t i = config.layer_count - 1; i >= 0; --i) {
    const LayerWeights& w = weights.layers[static_cast<size_t>(i)];
    const LayerWeights& g = gradients.layers[static_cast<size_t>(i)];
    LayerActivations& layer = saved.layers[static_cast<size_t>(i)];
    const bool is_last = i + 1 == config.layer_count;

    // The MLP: x = middle + down(swiglu(gate_up(norm(middle)))).
    LinearBackwardParameters(dx, layer.mlp_hidden, g.down, g.down_bias);
    const at::Tensor d_mlp_hidden = at::mm(dx, w.down);
    LowRankBackward(dx, layer.mlp_hidden, w.adapter.down, g.adapter.down, d_mlp_hidden);
    const at::Tensor d_gate_up = SwiGluBackward(d_mlp_hidden, layer.gate_up);
    LinearBackwardParameters(d_gate_up, layer.mlp_input, g.gate_up, g.gate_up_bias);
    const at::Tensor d_mlp_input = at::mm(d_gate_up, w.gate_up);
    const int64_t size = config.intermediate_size;
    LowRankBackward(d_gate_up.narrow(1, 0, size), layer.mlp_input, w.adapter.gate, g.adapter.gate, d_mlp_input);
    LowRankBackward(d_gate_up.narrow(1, size, size), layer.mlp_input, w.adapter.up, g.adapter.up, d_mlp_input);
    dx.add_(RmsNormBackward(d_mlp_input, layer.middle, w.mlp_norm, layer.mlp_scale, g.mlp_norm));

    // The attention: middle = input + output(attention(norm(input))).
    LinearBackwardParameters(dx, layer.attention_output, g.output, g.output_bias);
    const at::Tensor d_attention_output = at::mm(dx, w.output);
    LowRankBackward(dx, layer.attention_output, w.adapter.output, g.adapter.output, d_attention_output);
    const AttentionGradients d_attention =
        AttentionBackward(config, is_last ? batch.output_plan : batch.plan, layer.attention, d_attention_output);
    ProjectionGradients d = ProjectBackward(config, w, g, batch, is_last, layer, d_attention);
    if (is_last) {
      AddRows(d.rows, batch.output_rows, d.query_rows);
    } else {
      d.rows.add_(d.query_rows);
    }
    at::Tensor d_input =
        RmsNormBackward(d.rows, layer.input, w.attention_norm, layer.attention_scale, g.attention_norm);
    if (is_last) {
      AddRows(d_input, batch.output_rows, dx);
      dx = d_input;
    } else {
      dx.add_(d_input);
    }
    layer = LayerActivations();  // frees memory as the pass goes back
    if (done) done(i);
  }
  if (gradients.embedding.defined()) AddRows(gradients.embedding, batch.ids, dx);
  if (done) done(ParameterSpec::kEmbedding);
}

}  // namespace kgrpo::policy
