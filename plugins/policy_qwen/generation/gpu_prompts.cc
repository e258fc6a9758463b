// The prompts of GpuModel: rows cut into sequences, and the layers over them by PromptOps.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "policy_qwen/generation/gpu_model.h"

namespace kgrpo::policy {

// Cuts the rows into sequences, and those into groups within GroupPositions.
std::vector<PromptGroup> GpuModel::UploadGroups(std::span<const StepRow> rows) {
  struct Ends {
    std::vector<int32_t> rows = {0}, positions = {0}, slots;
  };
  std::vector<PromptGroup> groups;
  std::vector<Ends> ends;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].slot == rows[begin].slot) ++end;
    const auto count = static_cast<int64_t>(end - begin), positions = int64_t{rows[end - 1].position} + 1;
    if (groups.empty() || groups.back().positions + positions > GroupPositions(limits_)) {
      groups.push_back({.first_row = static_cast<int64_t>(begin)});
      ends.emplace_back();
    }
    PromptGroup& group = groups.back();
    group.rows += count;
    group.sequences += 1;
    group.positions += positions;
    group.longest_rows = std::max(group.longest_rows, count);
    group.longest = std::max(group.longest, positions);
    ends.back().rows.push_back(static_cast<int32_t>(group.rows));
    ends.back().positions.push_back(static_cast<int32_t>(group.positions));
    ends.back().slots.push_back(rows[begin].slot);
  }
  std::vector<int32_t> index;
  const auto add = [&](const std::vector<int32_t>& values) {
    const auto* const at = prompt_index_.As<int32_t>() + index.size();
    index.insert(index.end(), values.begin(), values.end());
    return at;
  };
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].row_ends = add(ends[i].rows);
    groups[i].position_ends = add(ends[i].positions);
    groups[i].slots = add(ends[i].slots);
  }
  Upload(prompt_index_, 0, std::span<const int32_t>(index));
  return groups;
}

void GpuModel::ReadPrompts(std::span<const StepRow> rows, std::span<const int32_t> sampled) {
  if (!prompt_ops_) return ReadByPosition(rows, sampled);
  const auto count = static_cast<int64_t>(rows.size()), sampled_count = static_cast<int64_t>(sampled.size());
  Upload(step_rows_, 0, rows);
  Upload(sampled_rows_, 0, sampled);
  QueueEmbedding(step_rows_.As<StepRow>(), count);
  const int32_t* const which = sampled_rows_.As<int32_t>();
  void* const x = QueuePromptLayers(count, UploadGroups(rows), which, sampled_count);
  QueueSampling(x, {}, sampled_count, nullptr, which, sampled_count);
}

// A step for each position, of all prompts that have it: no two rows of a step are of one slot, and what a row attends
// to is there, also in pages of another prompt.
void GpuModel::ReadByPosition(std::span<const StepRow> rows, std::span<const int32_t> sampled) {
  std::vector<bool> is_sampled(rows.size());
  for (const int32_t i : sampled) is_sampled[static_cast<size_t>(i)] = true;
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return rows[i].position; });
  std::vector<StepRow> sorted;
  std::ranges::transform(order, std::back_inserter(sorted), [&](size_t i) { return rows[i]; });
  Upload(step_rows_, 0, std::span<const StepRow>(sorted));
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    std::vector<int32_t> which;  // of the step's rows, those to sample
    for (; end < sorted.size() && sorted[end].position == sorted[begin].position; ++end) {
      if (is_sampled[order[end]]) which.push_back(static_cast<int32_t>(end - begin));
    }
    const auto count = static_cast<int64_t>(end - begin), sampled_count = static_cast<int64_t>(which.size());
    Upload(sampled_rows_, 0, std::span<const int32_t>(which));
    QueueEmbedding(step_rows_.As<StepRow>() + begin, count);
    const Pending pending = QueueLayers(count, sorted[begin].position / kAttentionSplit + 1);
    const int32_t* const at = sampled_rows_.As<int32_t>();
    QueueSampling(x_.As<void>(), pending, count, at, at, sampled_count);
  }
}

void* GpuModel::QueuePromptLayers(int64_t rows, const std::vector<PromptGroup>& groups, const int32_t* sampled,
                                  int64_t count) {
  void* x = x_.As<void>();
  const auto row = [&](const GpuMemory& memory, int64_t index, int64_t width) {
    return memory.As<char>() + index * width * (type_ == Element::kBfloat16 ? 2 : 4);
  };
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights& w = weights_.layers[i];
    const LayerCache cache = CacheOf(i);
    QueueNorm(x_.As<void>(), {}, w.attention_norm, rows, nullptr, rows);
    prompt_ops_->Product(PromptProduct::kQueryKeyValue, normed_.As<void>(), PlaceOf(w.query_key_value), nullptr, rows,
                         partial_.As<void>());
    CheckGpu("generation", kernels_.finish_query_key_value(type_, SumsOf(w, 1), places_.As<Place>(), rows, Heads(),
                                                           cache, query_.As<void>(), stream_));
    for (const PromptGroup& group : groups) {
      CheckGpu("generation",
               kernels_.gather(type_, cache, group.slots, group.position_ends, group.sequences, group.longest, Heads(),
                               prompt_keys_.As<void>(), prompt_values_.As<void>(), stream_));
      const void* const attended = prompt_ops_->Attention(group, row(query_, group.first_row, config_.query_size()),
                                                          prompt_keys_.As<void>(), prompt_values_.As<void>());
      prompt_ops_->Product(PromptProduct::kOutput, attended, PlaceOf(w.output), PlaceOf(w.output_bias), group.rows,
                           row(x_, group.first_row, config_.hidden_size));
    }
    if (i + 1 == weights_.layers.size()) {
      if (count == 0) break;
      prompt_ops_->TakeRows(x, rows, sampled, count, partial_.As<void>());
      x = partial_.As<void>();
      rows = count;
    }
    QueueNorm(x, {}, w.mlp_norm, rows, nullptr, rows);
    prompt_ops_->Product(PromptProduct::kGateUp, normed_.As<void>(), PlaceOf(w.gate_up), PlaceOf(w.gate_up_bias), rows,
                         gate_up_.As<void>());
    CheckGpu("generation",
             kernels_.swiglu(type_, gate_up_.As<void>(), rows, config_.intermediate_size, gated_.As<void>(), stream_));
    prompt_ops_->Product(PromptProduct::kDown, gated_.As<void>(), PlaceOf(w.down), PlaceOf(w.down_bias), rows, x);
  }
  return x;
}

}  // namespace kgrpo::policy
