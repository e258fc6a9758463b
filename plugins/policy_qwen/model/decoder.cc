#include "policy_qwen/model/decoder.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>

#include "policy_qwen/model/ops.h"
#include "policy_qwen/model/tensors.h"
#include "policy_qwen/model/token_logprobs.h"

namespace kgrpo::policy {
namespace {

class TorchDecoder final : public Decoder {
 public:
  TorchDecoder(const ModelConfig& config, const Weights& weights, RotaryTable& rotary)
      : config_(config), weights_(weights), rotary_(rotary), device_(weights.embedding.device()) {}

  at::Tensor Step(const std::vector<int64_t>& ids, const std::vector<int64_t>& positions,
                  KeyValueCache& cache) override {
    const RotaryAngles angles = rotary_.At(IndexTensor(positions, device_), *std::ranges::max_element(positions) + 1);
    const at::Tensor mask = cache.Mask();
    at::Tensor x = GatherRows(weights_.embedding, IndexTensor(ids, device_));
    for (int64_t i = 0; i < config_.layer_count; ++i) {
      const LayerWeights& w = weights_.layers[static_cast<size_t>(i)];
      const at::Tensor attention =
          Attend(i, w, RmsNorm(x, w.attention_norm, config_.norm_epsilon, nullptr), angles, mask, cache);
      x = LinearAdd(x, attention, w.output, w.output_bias);
      const at::Tensor mlp_input = RmsNorm(x, w.mlp_norm, config_.norm_epsilon, nullptr);
      x = LinearAdd(x, SwiGlu(Linear(mlp_input, w.gate_up, w.gate_up_bias)), w.down, w.down_bias);
    }
    return RmsNorm(x, weights_.final_norm, config_.norm_epsilon, nullptr);
  }

  at::Tensor Logits(const at::Tensor& hidden, double temperature) override {
    return policy::Logits(hidden, weights_.head, temperature);
  }

 private:
  // Attention of one new token a row: [rows, hidden] -> [rows, query size].
  at::Tensor Attend(int64_t layer, const LayerWeights& w, const at::Tensor& x, const RotaryAngles& angles,
                    const at::Tensor& mask, KeyValueCache& cache) {
    const int64_t heads = config_.head_count, kv_heads = config_.kv_head_count, size = config_.head_size;
    const int64_t rows = x.size(0);
    const at::Tensor all =
        Linear(x, w.query_key_value, w.query_key_value_bias).view({rows, heads + 2 * kv_heads, size});
    at::Tensor query_key = all.narrow(1, 0, heads + kv_heads);
    if (config_.query_key_norm) {
      query_key = at::cat({RmsNorm(query_key.narrow(1, 0, heads), w.query_norm, config_.norm_epsilon, nullptr),
                           RmsNorm(query_key.narrow(1, heads, kv_heads), w.key_norm, config_.norm_epsilon, nullptr)},
                          1);
    }
    query_key = Rotate(query_key, angles);
    cache.WriteColumn(layer, query_key.narrow(1, heads, kv_heads), all.narrow(1, heads + kv_heads, kv_heads));

    const at::Tensor query = query_key.narrow(1, 0, heads).reshape({rows * kv_heads, heads / kv_heads, size});
    at::Tensor scores = at::bmm(query, cache.Keys(layer).transpose(1, 2)).to(at::kFloat);
    scores.mul_(1.0 / std::sqrt(static_cast<double>(size)));
    if (mask.defined()) scores.view({rows, kv_heads, heads / kv_heads, -1}).add_(mask);
    const at::Tensor probabilities = at::_softmax(scores, -1, false).to(query.scalar_type());
    return at::bmm(probabilities, cache.Values(layer)).view({rows, heads * size});
  }

  const ModelConfig& config_;
  const Weights& weights_;
  RotaryTable& rotary_;
  at::Device device_;
};

}  // namespace

std::unique_ptr<Decoder> MakeDecoder(const ModelConfig& config, const Weights& weights, RotaryTable& rotary) {
  if (weights.embedding.is_cpu()) return MakeRowDecoder(config, weights, rotary);
  return std::make_unique<TorchDecoder>(config, weights, rotary);
}

}  // namespace kgrpo::policy
