// The model on a CPU for the scheduler: a cache per slot, prompts by the transformer's forward pass, decode steps row
// by row. Made by generation_engine.cc.
//
// A completion's bits depend on its prompt, seed, sampling and parameters only. Prompts are computed whole and by
// themselves, as libtorch's products may depend on what else they multiply; equal ones of a call are computed once. In
// a decode step every row is computed from its own values, by the same instructions in the same order however many rows
// there are (row_kernels.h). Values are rounded to the model's dtype where the operators of ops.h round them, so that
// log-probabilities stay close to those of a forward pass.
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

#include "policy_qwen/device.h"
#include "policy_qwen/generation/generation_engine.h"
#include "policy_qwen/model/random.h"
#include "policy_qwen/model/row_kernels.h"

namespace kgrpo::policy {
namespace {

// Number of multiplications that is worth a thread of its own.
constexpr int64_t kWorkATask = int64_t{1} << 18;

// T: the type of weights and cache.
template <typename T>
class CpuModel final : public GenerationDevice {
 public:
  CpuModel(const ModelConfig& config, const Weights& weights, RotaryTable& rotary, int32_t slots)
      : config_(config),
        weights_(weights),
        rotary_(rotary),
        kernels_(BestRowKernels()),
        slots_(static_cast<size_t>(slots)),
        states_(slots_.size()) {}

  void Admit(int32_t slot, const Slot& start, std::span<const int32_t> pages) override {
    slots_[static_cast<size_t>(slot)] = start;
    State& state = states_[static_cast<size_t>(slot)];
    state = State();
    state.capacity = static_cast<int64_t>(pages.size()) * kPageSize;
    const auto allocate = [&] {
      return at::empty({config_.layer_count, config_.kv_head_count, state.capacity, config_.head_size},
                       weights_.embedding.options());
    };
    state.keys = allocate();
    state.values = allocate();
  }

  void ReadPrompts(std::span<const StepRow> rows, std::span<const int32_t>) override {
    const DeviceScope scope(at::kCPU);
    std::vector<int32_t> sampled;  // slots
    std::vector<at::Tensor> hidden;
    for (size_t begin = 0; begin < rows.size();) {
      PackedSequence prompt;
      std::vector<int32_t> equal;  // slots
      for (size_t end = begin; end < rows.size(); begin = end) {
        std::vector<int32_t> ids;
        for (; end < rows.size() && rows[end].slot == rows[begin].slot; ++end) ids.push_back(rows[end].token);
        if (!equal.empty() && ids != prompt.ids) break;
        prompt.ids = std::move(ids);
        equal.push_back(rows[begin].slot);
        slots_[static_cast<size_t>(rows[begin].slot)].position = rows[end - 1].position;
      }
      const auto count = static_cast<int64_t>(prompt.ids.size());
      const auto write = [&](int64_t layer, const at::Tensor& keys, const at::Tensor& values) {
        for (const int32_t slot : equal) {
          const State& state = states_[static_cast<size_t>(slot)];
          state.keys.select(0, layer).narrow(1, 0, count).copy_(keys.transpose(0, 1));
          state.values.select(0, layer).narrow(1, 0, count).copy_(values.transpose(0, 1));
        }
      };
      const at::Tensor last = prompts_.Forward(weights_, prompts_.Pack({std::move(prompt)}, rotary_), nullptr, write);
      hidden.insert(hidden.end(), equal.size(), last);
      sampled.insert(sampled.end(), equal.begin(), equal.end());
    }
    Sample(at::cat(hidden), sampled);
  }

  void Decode(std::span<const int32_t> slots, int32_t, int32_t steps) override {
    const DeviceScope scope(at::kCPU);
    for (int32_t step = 0; step < steps; ++step) {
      std::vector<int32_t> active;
      std::ranges::copy_if(slots, std::back_inserter(active),
                           [&](int32_t slot) { return slots_[static_cast<size_t>(slot)].end == SlotEnd::kNone; });
      if (active.empty()) return;
      Sample(Step(active), active);
    }
  }

  std::vector<Slot> ReadSlots() override { return slots_; }

  void Fetch(int32_t slot, Completion& completion) override {
    State& state = states_[static_cast<size_t>(slot)];
    completion.ids = std::move(state.ids);
    completion.logprobs = std::move(state.logprobs);
    state = State();  // the slot has ended, and its pages go to others
  }

  void Clear() override { std::ranges::fill(states_, State()); }

 private:
  using Floats = std::vector<float>;

  // Of a slot, besides what the scheduler reads.
  struct State {
    at::Tensor keys, values;  // [layers, kv heads, capacity, head size]
    int64_t capacity = 0;     // positions
    std::vector<int32_t> ids;
    std::vector<float> logprobs;
  };

  // Final hidden states, normalised, after the last token of each slot: float32 [slots, hidden].
  at::Tensor Step(const std::vector<int32_t>& slots) {
    rows_ = static_cast<int64_t>(slots.size());
    std::vector<int64_t> positions;
    positions.reserve(slots.size());
    for (const int32_t slot : slots) positions.push_back(slots_[static_cast<size_t>(slot)].position);
    const int64_t limit = *std::ranges::max_element(positions) + 1;
    const RotaryAngles angles = rotary_.At(IndexTensor(positions, at::kCPU), limit);
    Embed(slots);
    for (int64_t i = 0; i < config_.layer_count; ++i) {
      const LayerWeights& w = weights_.layers[static_cast<size_t>(i)];
      Norm(x_, w.attention_norm, normed_);
      Project(normed_, rows_, w.query_key_value, w.query_key_value_bias, projected_);
      RotateHeads(w, angles);
      WriteCache(i, slots);
      Attend(i, slots, limit);
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

  // Samples the next token of each slot from its final hidden state, and advances the slot.
  void Sample(const at::Tensor& hidden, const std::vector<int32_t>& slots) {
    const at::Tensor wide = hidden.to(at::kFloat).contiguous();
    const int64_t rows = wide.size(0), vocabulary = weights_.head.size(0);
    const auto slot_of = [&](int64_t row) -> Slot& {
      return slots_[static_cast<size_t>(slots[static_cast<size_t>(row)])];
    };
    const at::Tensor logits = at::empty({rows, vocabulary}, wide.options());
    float* const out = logits.mutable_data_ptr<float>();
    ForColumns(wide.const_data_ptr<float>(), rows, weights_.head, out, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < rows; ++row) {
        const float temperature = slot_of(row).temperature, divisor = temperature == 0 ? 1.0F : temperature;
        float* y = out + row * vocabulary;
        for (int64_t j = begin; j < end; ++j) y[j] = Round(y[j]) / divisor;
      }
    });
    at::parallel_for(0, rows, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const Slot& slot = slot_of(row);
        const SamplingOptions options = {1, slot.temperature, slot.top_k, slot.top_p, slot.min_p};
        const double uniform = RandomUniform(slot.seed, static_cast<uint64_t>(slot.count));
        MoveOn(slots[static_cast<size_t>(row)],
               SampleToken({out + row * vocabulary, static_cast<size_t>(vocabulary)}, options, uniform));
      }
    });
  }

  void MoveOn(int32_t index, const SampledToken& sampled) {
    Slot& slot = slots_[static_cast<size_t>(index)];
    State& state = states_[static_cast<size_t>(index)];
    state.ids.push_back(sampled.id);
    state.logprobs.push_back(sampled.logprob);
    slot.token = sampled.id;
    ++slot.position;
    if (++slot.count == slot.limit) slot.end = SlotEnd::kLength;
    if (std::ranges::find(config_.end_ids, sampled.id) != config_.end_ids.end()) slot.end = SlotEnd::kStop;
  }

  static float Round(float value) {
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return static_cast<float>(static_cast<T>(value));
    }
  }
  static constexpr Format kFormat = std::is_same_v<T, float> ? Format::kFloat32 : Format::kBfloat16;

  static const T* DataOf(const at::Tensor& tensor) { return tensor.const_data_ptr<T>(); }

  void Embed(const std::vector<int32_t>& slots) {
    const int64_t size = config_.hidden_size;
    x_.resize(slots.size() * static_cast<size_t>(size));
    float* to = x_.data();
    for (const int32_t slot : slots) {
      const T* from = DataOf(weights_.embedding) + slots_[static_cast<size_t>(slot)].token * size;
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

  // Writes the keys and values in projected_ to the slots' caches.
  void WriteCache(int64_t layer, const std::vector<int32_t>& slots) const {
    const int64_t heads = config_.head_count, kv_heads = config_.kv_head_count, size = config_.head_size;
    const int64_t width = (heads + 2 * kv_heads) * size;
    for (int64_t row = 0; row < rows_; ++row) {
      const auto slot = static_cast<size_t>(slots[static_cast<size_t>(row)]);
      const State& state = states_[slot];
      const float* key = projected_.data() + row * width + heads * size;
      for (int64_t head = 0; head < kv_heads; ++head, key += size) {
        const float* value = key + kv_heads * size;
        const int64_t place = ((layer * kv_heads + head) * state.capacity + slots_[slot].position) * size;
        const auto convert = [](float from) { return static_cast<T>(from); };
        std::transform(key, key + size, state.keys.template mutable_data_ptr<T>() + place, convert);
        std::transform(value, value + size, state.values.template mutable_data_ptr<T>() + place, convert);
      }
    }
  }

  // Attention of each row's query heads over its slot's cache. No slot has more than `most` positions.
  void Attend(int64_t layer, const std::vector<int32_t>& slots, int64_t most) {
    const int64_t heads = config_.head_count, kv_heads = config_.kv_head_count, size = config_.head_size;
    const int64_t each = heads / kv_heads, width = (heads + 2 * kv_heads) * size;
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
    attended_.resize(static_cast<size_t>(rows_ * heads * size));
    const int64_t grain = std::max<int64_t>(1, kWorkATask / (2 * each * most * size));
    at::parallel_for(0, rows_ * kv_heads, grain, [&](int64_t begin, int64_t end) {
      Floats scores;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / kv_heads, head = i % kv_heads;
        const auto slot = static_cast<size_t>(slots[static_cast<size_t>(row)]);
        const State& state = states_[slot];
        const int64_t count = slots_[slot].position + 1;
        const int64_t place = (layer * kv_heads + head) * state.capacity * size;
        const float* query = projected_.data() + row * width + head * each * size;
        scores.resize(static_cast<size_t>(each * count));
        kernels_.products(query, each, size, DataOf(state.keys) + place, kFormat, 0, count, count, scores.data());
        for (int64_t j = 0; j < each; ++j) Softmax(std::span(scores).subspan(j * count, count), scale);
        float* out = attended_.data() + (row * heads + head * each) * size;
        kernels_.weighted_sums(scores.data(), each, count, DataOf(state.values) + place, kFormat, size, out);
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
  const Ops prompt_ops_;
  const Transformer prompts_{config_, prompt_ops_};
  const RowKernels& kernels_;
  std::vector<Slot> slots_;
  std::vector<State> states_;  // of slots_
  int64_t rows_ = 0;           // of a step
  Floats x_;                   // [rows, hidden]: the residual stream
  Floats normed_;              // [rows, hidden]
  Floats projected_;           // [rows, query + 2 kv size]: q, k, v; then [rows, 2 intermediate]: gate, up
  Floats attended_;            // [rows, query size]
  Floats mlp_;                 // [rows, intermediate]
  Floats sum_;                 // [rows, hidden]: what AddProjection adds
};

}  // namespace

std::unique_ptr<GenerationDevice> MakeCpuModel(const ModelConfig& config, const Weights& weights, RotaryTable& rotary,
                                               int32_t slots) {
  if (weights.embedding.scalar_type() == at::kFloat)
    return std::make_unique<CpuModel<float>>(config, weights, rotary, slots);
  return std::make_unique<CpuModel<at::BFloat16>>(config, weights, rotary, slots);
}

}  // namespace kgrpo::policy
