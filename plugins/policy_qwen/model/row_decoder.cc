// The decoder for CPUs: every row is computed from its own values alone, by the same instructions in the same order
// however many rows there are (row_kernels.h). Values are rounded to the model's dtype where the operators of ops.h
// round them, so that log-probabilities stay close to those of a forward pass.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "policy_qwen/model/decoder.h"
#include "policy_qwen/model/row_kernels.h"
#include "policy_qwen/model/tensors.h"

namespace kgrpo::policy {
namespace {

// Number of multiplications that is worth a thread of its own.
constexpr int64_t kWorkATask = int64_t{1} << 18;

// T: the type of weights and cache.
template <typename T>
class RowDecoder final : public Decoder {
 public:
  RowDecoder(const ModelConfig& config, const Weights& weights, RotaryTable& rotary)
      : config_(config), weights_(weights), rotary_(rotary), kernels_(BestRowKernels()) {}

  at::Tensor Step(const std::vector<int64_t>& ids, const std::vector<int64_t>& positions,
                  KeyValueCache& cache) override {
    rows_ = static_cast<int64_t>(ids.size());
    const RotaryAngles angles = rotary_.At(IndexTensor(positions, at::kCPU), *std::ranges::max_element(positions) + 1);
    Embed(ids);
    for (int64_t i = 0; i < config_.layer_count; ++i) {
      const LayerWeights& w = weights_.layers[static_cast<size_t>(i)];
      Norm(x_, w.attention_norm, normed_);
      Project(normed_, rows_, w.query_key_value, w.query_key_value_bias, projected_);
      RotateHeads(w, angles);
      WriteColumn(i, cache);
      Attend(i, cache);
      AddProjection(attended_, w.output, w.output_bias);
      Norm(x_, w.mlp_norm, normed_);
      Project(normed_, rows_, w.gate_up, w.gate_up_bias, projected_);
      SwiGlu();
      AddProjection(mlp_, w.down, w.down_bias);
    }
    at::Tensor hidden = at::empty({rows_, config_.hidden_size}, at::TensorOptions().dtype(at::kFloat));
    Norm(x_, weights_.final_norm, normed_);
    std::ranges::copy(normed_, hidden.mutable_data_ptr<float>());
    return hidden;
  }

  at::Tensor Logits(const at::Tensor& hidden, double temperature) override {
    const at::Tensor wide = hidden.to(at::kFloat).contiguous();
    const int64_t rows = wide.size(0), vocabulary = weights_.head.size(0);
    at::Tensor logits = at::empty({rows, vocabulary}, wide.options());
    float* out = logits.mutable_data_ptr<float>();
    const auto divisor = static_cast<float>(temperature);
    ForColumns(wide.const_data_ptr<float>(), rows, weights_.head, out, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < rows; ++row) {
        float* y = out + row * vocabulary;
        for (int64_t j = begin; j < end; ++j) y[j] = Round(y[j]) / divisor;
      }
    });
    return logits;
  }

 private:
  using Floats = std::vector<float>;

  static float Round(float value) {
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return static_cast<float>(static_cast<T>(value));
    }
  }
  static constexpr Format kFormat = std::is_same_v<T, float> ? Format::kFloat32 : Format::kBfloat16;

  static const T* DataOf(const at::Tensor& tensor) { return tensor.const_data_ptr<T>(); }

  void Embed(const std::vector<int64_t>& ids) {
    const int64_t size = config_.hidden_size;
    x_.resize(ids.size() * static_cast<size_t>(size));
    float* to = x_.data();
    for (const int64_t id : ids) {
      const T* from = DataOf(weights_.embedding) + id * size;
      to = std::transform(from, from + size, to, [](T value) { return static_cast<float>(value); });
    }
  }

  // RmsNorm of ops.h over pieces of the weight's size. `y` may be `x`.
  void Norm(std::span<const float> x, const at::Tensor& weight, float* y) const {
    const int64_t size = weight.numel();
    const T* w = DataOf(weight);
    const auto count = static_cast<int64_t>(x.size()) / size;
    for (int64_t i = 0; i < count; ++i) {
      const float* from = x.data() + i * size;
      float* to = y + i * size;
      const float mean = kernels_.sum_of_squares(from, size) / static_cast<float>(size);
      const float scale = 1.0F / std::sqrt(mean + static_cast<float>(config_.norm_epsilon));
      for (int64_t j = 0; j < size; ++j) to[j] = Round(Round(from[j] * scale) * static_cast<float>(w[j]));
    }
  }
  void Norm(const Floats& x, const at::Tensor& weight, Floats& y) const {
    y.resize(x.size());
    Norm(std::span<const float>(x), weight, y.data());
  }

  // out = x weight^T, in parts of its columns; finish(begin, end) goes over a part right after.
  template <typename Finish>
  void ForColumns(const float* x, int64_t rows, const at::Tensor& weight, float* out, Finish&& finish) const {
    const int64_t outputs = weight.size(0), inputs = weight.size(1);
    const int64_t grain = std::max<int64_t>(16, kWorkATask / (rows * inputs) / 4 * 4);
    at::parallel_for(0, outputs, grain, [&](int64_t begin, int64_t end) {
      kernels_.products(x, rows, inputs, DataOf(weight), kFormat, begin, end, outputs, out);
      finish(begin, end);
    });
  }

  // y = x weight^T + bias, for `rows` rows.
  void Project(const Floats& x, int64_t rows, const at::Tensor& weight, const at::Tensor& bias, Floats& y) const {
    const int64_t outputs = weight.size(0);
    y.resize(static_cast<size_t>(rows * outputs));
    const T* b = bias.defined() ? DataOf(bias) : nullptr;
    if (b == nullptr && std::is_same_v<T, float>) {
      ForColumns(x.data(), rows, weight, y.data(), [](int64_t, int64_t) {});
      return;
    }
    ForColumns(x.data(), rows, weight, y.data(), [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < rows; ++row) {
        float* to = y.data() + row * outputs;
        for (int64_t j = begin; j < end; ++j) to[j] = Round(b == nullptr ? to[j] : to[j] + static_cast<float>(b[j]));
      }
    });
  }

  // x_ += x weight^T + bias.
  void AddProjection(const Floats& x, const at::Tensor& weight, const at::Tensor& bias) {
    const int64_t outputs = weight.size(0);
    sum_.resize(static_cast<size_t>(rows_ * outputs));
    const T* b = bias.defined() ? DataOf(bias) : nullptr;
    ForColumns(x.data(), rows_, weight, sum_.data(), [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < rows_; ++row) {
        float* to = x_.data() + row * outputs;
        const float* from = sum_.data() + row * outputs;
        for (int64_t j = begin; j < end; ++j) {
          to[j] = Round(to[j] + from[j]);
          if (b != nullptr) to[j] = Round(to[j] + static_cast<float>(b[j]));
        }
      }
    });
  }

  // Norms, where the model has them, and rotary positions of the queries and keys in projected_.
  void RotateHeads(const LayerWeights& w, const RotaryAngles& angles) {
    const int64_t heads = config_.head_count, kv_heads = config_.kv_head_count, size = config_.head_size;
    const int64_t half = size / 2, width = (heads + 2 * kv_heads) * size;
    const T* cosines = DataOf(angles.cos);  // [rows, 1, size]
    const T* sines = DataOf(angles.sin);    // [rows, 1, half]
    for (int64_t row = 0; row < rows_; ++row, cosines += size, sines += half) {
      const std::span<float> all(projected_.data() + row * width, static_cast<size_t>(width));
      if (config_.query_key_norm) {
        const std::span<float> queries = all.first(static_cast<size_t>(heads * size));
        const std::span<float> keys =
            all.subspan(static_cast<size_t>(heads * size), static_cast<size_t>(kv_heads * size));
        Norm(queries, w.query_norm, queries.data());
        Norm(keys, w.key_norm, keys.data());
      }
      for (int64_t head = 0; head < heads + kv_heads; ++head) {
        float* first = all.data() + head * size;
        float* second = first + half;
        for (int64_t j = 0; j < half; ++j) {
          const float a = first[j], b = second[j], sine = static_cast<float>(sines[j]);
          first[j] = Round(Round(a * static_cast<float>(cosines[j])) - b * sine);
          second[j] = Round(Round(b * static_cast<float>(cosines[half + j])) + a * sine);
        }
      }
    }
  }

  void WriteColumn(int64_t layer, KeyValueCache& cache) const {
    const int64_t heads = config_.head_count, kv_heads = config_.kv_head_count, size = config_.head_size;
    const int64_t width = (heads + 2 * kv_heads) * size;
    T* keys = cache.WholeKeys(layer).mutable_data_ptr<T>();
    T* values = cache.WholeValues(layer).mutable_data_ptr<T>();
    for (int64_t row = 0; row < rows_; ++row) {
      const float* key = projected_.data() + row * width + heads * size;
      for (int64_t head = 0; head < kv_heads; ++head, key += size) {
        const float* value = key + kv_heads * size;
        const int64_t place = ((row * kv_heads + head) * cache.capacity() + cache.columns() - 1) * size;
        for (int64_t j = 0; j < size; ++j) {
          keys[place + j] = static_cast<T>(key[j]);
          values[place + j] = static_cast<T>(value[j]);
        }
      }
    }
  }

  // Attention of each row's query heads over its own columns of the cache, padding left out.
  void Attend(int64_t layer, const KeyValueCache& cache) {
    const int64_t heads = config_.head_count, kv_heads = config_.kv_head_count, size = config_.head_size;
    const int64_t each = heads / kv_heads, width = (heads + 2 * kv_heads) * size;
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
    const T* keys = DataOf(cache.WholeKeys(layer));
    const T* values = DataOf(cache.WholeValues(layer));
    attended_.resize(static_cast<size_t>(rows_ * heads * size));
    const int64_t grain = std::max<int64_t>(1, kWorkATask / (2 * each * cache.columns() * size));
    at::parallel_for(0, rows_ * kv_heads, grain, [&](int64_t begin, int64_t end) {
      Floats scores;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / kv_heads, head = i % kv_heads;
        const int64_t first = cache.first_column(row), count = cache.columns() - first;
        const int64_t place = (i * cache.capacity() + first) * size;
        const float* query = projected_.data() + row * width + head * each * size;
        scores.resize(static_cast<size_t>(each * count));
        kernels_.products(query, each, size, keys + place, kFormat, 0, count, count, scores.data());
        for (int64_t j = 0; j < each; ++j) Softmax(std::span(scores).subspan(j * count, count), scale);
        float* out = attended_.data() + (row * heads + head * each) * size;
        kernels_.weighted_sums(scores.data(), each, count, values + place, kFormat, size, out);
        for (int64_t j = 0; j < each * size; ++j) out[j] = Round(out[j]);
      }
    });
  }

  // scores = softmax(scale * scores).
  void Softmax(std::span<float> scores, float scale) const {
    const auto count = static_cast<int64_t>(scores.size());
    for (float& score : scores) score = Round(score) * scale;
    const float sum =
        kernels_.exponentials(scores.data(), count, kernels_.maximum(scores.data(), count), scores.data());
    for (float& score : scores) score = Round(score / sum);
  }

  // mlp_ = silu(gate) * up of projected_.
  void SwiGlu() {
    const int64_t size = config_.intermediate_size;
    mlp_.resize(static_cast<size_t>(rows_ * size));
    for (int64_t row = 0; row < rows_; ++row) {
      float* gate = projected_.data() + row * 2 * size;
      const float* up = gate + size;
      float* out = mlp_.data() + row * size;
      kernels_.silu(gate, size);
      for (int64_t j = 0; j < size; ++j) out[j] = Round(Round(gate[j]) * up[j]);
    }
  }

  const ModelConfig& config_;
  const Weights& weights_;
  RotaryTable& rotary_;
  const RowKernels& kernels_;
  int64_t rows_ = 0;
  Floats x_;          // [rows, hidden]: the residual stream
  Floats normed_;     // [rows, hidden]
  Floats projected_;  // [rows, query + 2 kv size]: q, k, v; then [rows, 2 intermediate]: gate, up
  Floats attended_;   // [rows, query size]
  Floats mlp_;        // [rows, intermediate]
  Floats sum_;        // [rows, hidden]: what AddProjection adds
};

}  // namespace

std::unique_ptr<Decoder> MakeRowDecoder(const ModelConfig& config, const Weights& weights, RotaryTable& rotary) {
  if (weights.embedding.scalar_type() == at::kFloat)
    return std::make_unique<RowDecoder<float>>(config, weights, rotary);
  return std::make_unique<RowDecoder<at::BFloat16>>(config, weights, rotary);
}

}  // namespace kgrpo::policy
