#include "policy_qwen/generation/gpu_model.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace kgrpo::policy {
namespace {

void CheckGeneration(const char* failure) { CheckGpu("generation", failure); }

uint64_t ElementBytes(Element type) { return type == Element::kBfloat16 ? 2 : 4; }

int64_t Width(const ModelConfig& config) {  // of q, k and v together
  return config.query_size() + 2 * config.kv_size();
}

int64_t PartialElements(const ModelConfig& config) {  // of a row
  return kMaxSplits * std::max(Width(config), config.hidden_size);
}

int64_t DecodeRows(const SchedulerLimits& limits) { return std::bit_ceil(static_cast<uint32_t>(limits.slots)); }

int64_t RowsAtATime(const SchedulerLimits& limits, bool has_prompt_ops) {
  return std::max<int64_t>(DecodeRows(limits), has_prompt_ops ? limits.rows_a_read : 0);
}

uint64_t PartialBytes(const ModelConfig& config, const SchedulerLimits& limits, bool has_prompt_ops) {
  int64_t elements = DecodeRows(limits) * PartialElements(config);
  if (has_prompt_ops) elements = std::max(elements, limits.rows_a_read * Width(config));
  return static_cast<uint64_t>(elements) * sizeof(float);
}

std::string MibRoundedUp(uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

// Reason why the kernels do not cover the model's shape, with the key of config.json; empty if they do.
std::string UncoveredShape(const ModelConfig& config) {
  const auto is = [](const char* key, int64_t value) { return std::string(key) + " is " + std::to_string(value); };
  if (config.head_size != 64 && config.head_size != 128)
    return is("head_dim", config.head_size) + ", expected 64 or 128";
  if (config.head_count / config.kv_head_count > 8) return "more than 8 query heads share a key";
  if (config.hidden_size % 8 != 0) return is("hidden_size", config.hidden_size) + ", expected a multiple of 8";
  if (config.intermediate_size % 8 != 0)
    return is("intermediate_size", config.intermediate_size) + ", expected a multiple of 8";
  if (config.vocabulary_size > kMaxVocabulary)
    return is("vocab_size", config.vocabulary_size) + ", above " + std::to_string(kMaxVocabulary);
  return "";
}

}  // namespace

GpuMemory::GpuMemory(const GpuRuntime& runtime, int32_t device, uint64_t bytes, const std::string& what)
    : data_(nullptr, {&runtime, device}), bytes_(bytes) {
  void* data = nullptr;
  const char* failure = runtime.allocate(device, bytes, &data);
  if (failure == nullptr) {
    data_.reset(data);
    return;
  }
  const std::string reason = failure;
  uint64_t free = 0;
  static_cast<void>(runtime.free_bytes(device, &free));
  throw Error(KGRPO_ERROR_UNAVAILABLE, "generation: engine needs " + MibRoundedUp(bytes) + " for " + what + ", and " +
                                           MibRoundedUp(free) + " of the GPU's memory are free (" + reason +
                                           "); lower generation_memory_mib or max_sequences");
}

void GpuModel::CheckShape(const ModelConfig& config) {
  const std::string problem = UncoveredShape(config);
  if (problem.empty()) return;
  throw Error(KGRPO_ERROR_UNSUPPORTED, "generation: engine: " + problem + "; \"generation\": \"auto\" does without it");
}

uint64_t GpuModel::PageBytes(const ModelConfig& config, Element type) {
  return static_cast<uint64_t>(2 * config.layer_count * config.kv_size() * kPageSize) * ElementBytes(type);
}

int64_t GpuModel::GroupPositions(const SchedulerLimits& limits) {
  return std::max<int64_t>(2 * RowsAtATime(limits, true), limits.context_length);
}

uint64_t GpuModel::BufferBytes(const ModelConfig& config, Element type, const SchedulerLimits& limits,
                               bool has_prompt_ops) {
  int64_t row = 2 * config.hidden_size + 2 * config.query_size() + config.intermediate_size;
  if (has_prompt_ops) row += 2 * config.intermediate_size;
  int64_t elements = RowsAtATime(limits, has_prompt_ops) * row + DecodeRows(limits) * config.vocabulary_size;
  if (has_prompt_ops) elements += 2 * GroupPositions(limits) * config.kv_size();
  return static_cast<uint64_t>(elements) * ElementBytes(type) + PartialBytes(config, limits, has_prompt_ops);
}

GpuModel::GpuModel(const ModelConfig& config, Element type, GpuStream stream, const Weights& weights,
                   RotaryAngles angles, const SchedulerLimits& limits, const GpuKernels& kernels,
                   const GpuRuntime& runtime, std::unique_ptr<PromptOps> prompt_ops)
    : config_(config),
      type_(type),
      weights_(weights),
      angles_(std::move(angles)),
      limits_(limits),
      kernels_(kernels),
      runtime_(runtime),
      prompt_ops_(std::move(prompt_ops)),
      rows_(RowsAtATime(limits, prompt_ops_ != nullptr)),
      pages_per_slot_((limits.context_length + kPageSize - 1) / kPageSize),
      stream_(stream) {
  CheckShape(config);
  const auto slots = static_cast<uint64_t>(limits.slots), rows = static_cast<uint64_t>(rows_);
  const auto take = [&](uint64_t bytes, const char* what) { return GpuMemory(runtime_, stream_.device, bytes, what); };
  const auto elements = [&](uint64_t count, int64_t width) {
    return take(count * static_cast<uint64_t>(width) * ElementBytes(type_), "a step's rows");
  };
  slots_ = take(slots * sizeof(Slot), "slots");
  pages_ = take(slots * static_cast<uint64_t>(pages_per_slot_) * sizeof(int32_t), "slots");
  end_ids_ = take(std::max<uint64_t>(1, config.end_ids.size()) * sizeof(int32_t), "slots");
  step_rows_ = take(static_cast<uint64_t>(RowsAtATime(limits, true)) * sizeof(StepRow), "a step's rows");
  sampled_rows_ = take(slots * sizeof(int32_t), "a step's rows");
  places_ = take(rows * sizeof(Place), "a step's rows");
  x_ = elements(rows, config.hidden_size);
  normed_ = elements(rows, config.hidden_size);
  partial_ = take(PartialBytes(config, limits, prompt_ops_ != nullptr), "a step's rows");
  query_ = elements(rows, config.query_size());
  attended_ = elements(rows, config.query_size());
  gated_ = elements(rows, config.intermediate_size);
  if (prompt_ops_) {
    prompt_index_ = take(5 * rows * sizeof(int32_t), "prompts");  // of UploadGroups
    prompt_keys_ = elements(static_cast<uint64_t>(GroupPositions(limits)), config.kv_size());
    prompt_values_ = elements(static_cast<uint64_t>(GroupPositions(limits)), config.kv_size());
    gate_up_ = elements(rows, 2 * config.intermediate_size);
  }
  logits_ = take(std::bit_ceil(slots) * static_cast<uint64_t>(config.vocabulary_size) * ElementBytes(type_), "logits");
  const auto segments = static_cast<uint64_t>((config.vocabulary_size + kSampleSegment - 1) / kSampleSegment);
  sample_parts_ = take(std::bit_ceil(slots) * segments * sizeof(SamplePart), "logits");
  const uint64_t cache = static_cast<uint64_t>(limits.pages) * PageBytes(config, type_) / 2;
  keys_ = take(cache, "the cache's keys");
  values_ = take(cache, "the cache's values");
  Upload(slots_, 0, std::span<const Slot>(std::vector<Slot>(slots)));  // ReadSlots copies the unused ones too
  Upload(end_ids_, 0, std::span<const int32_t>(config.end_ids));
  const std::vector<int32_t> none(static_cast<size_t>(DecodeRows(limits) * config.kv_head_count));
  attention_arrived_ = take(none.size() * sizeof(int32_t), "attention");
  Upload(attention_arrived_, 0, std::span<const int32_t>(none));
}

GpuModel::~GpuModel() { DropGraphs(); }

// Makes room for completions of `new_tokens` tokens and attention over `positions` positions. A buffer that grows
// moves, and graphs hold its address, so they are dropped.
void GpuModel::MakeRoom(int64_t new_tokens, int64_t positions) {
  const auto slots = static_cast<uint64_t>(limits_.slots);
  if (new_tokens > new_tokens_) {
    const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(new_tokens)));
    // Slots in use have tokens in the old buffers, in rows of the old length.
    const auto widened = [&]<typename T>(const GpuMemory& from, T) {
      std::vector<T> old(slots * static_cast<uint64_t>(new_tokens_)), wide(slots * static_cast<uint64_t>(wanted));
      if (!old.empty())
        CheckGeneration(runtime_.download(old.data(), from.As<void>(), old.size() * sizeof(T), stream_));
      for (int64_t slot = 0; slot < limits_.slots; ++slot)
        std::copy_n(old.begin() + slot * new_tokens_, new_tokens_, wide.begin() + slot * wanted);
      return wide;
    };
    const std::vector<int32_t> wide_ids = widened(ids_, int32_t{});
    const std::vector<float> wide_logprobs = widened(logprobs_, float{});
    DropGraphs();
    GpuMemory ids_memory(runtime_, stream_.device, wide_ids.size() * sizeof(int32_t), "completions");
    logprobs_ = GpuMemory(runtime_, stream_.device, wide_logprobs.size() * sizeof(float), "completions");
    ids_ = std::move(ids_memory);
    new_tokens_ = wanted;  // once both are there: an allocation may throw
    Upload(ids_, 0, std::span<const int32_t>(wide_ids));
    Upload(logprobs_, 0, std::span<const float>(wide_logprobs));
  }
  const int64_t splits = (positions + kAttentionSplit - 1) / kAttentionSplit;
  if (splits > position_splits_) {
    DropGraphs();
    const auto wider = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(splits)));
    const auto sums = static_cast<uint64_t>(DecodeRows(limits_) * config_.head_count * wider) * sizeof(float);
    position_splits_ = 0;  // until both arrays are there: an allocation may throw
    CheckGeneration(runtime_.wait(stream_));
    attention_sums_ = GpuMemory();
    attention_sums_ = GpuMemory(runtime_, stream_.device, sums * static_cast<uint64_t>(config_.head_size), "attention");
    attention_bounds_ = GpuMemory(runtime_, stream_.device, 2 * sums, "attention");
    position_splits_ = wider;
  }
}

void GpuModel::DropGraphs() {
  if (graphs_.empty()) return;
  static_cast<void>(runtime_.wait(stream_));
  for (const auto& [key, graph] : graphs_) runtime_.destroy_graph(stream_.device, graph);
  graphs_.clear();
}

void GpuModel::Admit(int32_t slot, const Slot& start, std::span<const int32_t> pages) {
  MakeRoom(start.limit, static_cast<int64_t>(pages.size()) * kPageSize);
  Upload(slots_, static_cast<size_t>(slot), std::span<const Slot>(&start, 1));
  Upload(pages_, static_cast<size_t>(slot) * static_cast<size_t>(pages_per_slot_), pages);
}

LayerCache GpuModel::CacheOf(size_t layer) const {
  const uint64_t offset = layer * (keys_.bytes() / static_cast<uint64_t>(config_.layer_count));
  return {keys_.As<char>() + offset, values_.As<char>() + offset, pages_.As<int32_t>(), pages_per_slot_};
}

HeadShape GpuModel::Heads() const {
  return {static_cast<int32_t>(config_.head_count), static_cast<int32_t>(config_.kv_head_count),
          static_cast<int32_t>(config_.head_size)};
}

HeadSums GpuModel::SumsOf(const LayerWeights& w, int32_t splits) const {
  return {partial_.As<float>(),
          splits,
          PlaceOf(w.query_key_value_bias),
          PlaceOf(w.query_norm),
          PlaceOf(w.key_norm),
          static_cast<float>(config_.norm_epsilon),
          PlaceOf(angles_.cos),
          PlaceOf(angles_.sin)};
}

void GpuModel::QueueEmbedding(const StepRow* step_rows, int64_t rows) {
  CheckGeneration(kernels_.embed(type_, step_rows, slots_.As<Slot>(), PlaceOf(weights_.embedding), rows,
                                 config_.hidden_size, x_.As<void>(), places_.As<Place>(), stream_));
}

void GpuModel::QueueNorm(void* x, const Pending& pending, const at::Tensor& weight, int64_t rows, const int32_t* gather,
                         int64_t out_rows) {
  CheckGeneration(kernels_.add_norm(type_, pending.sums, pending.splits, pending.bias, x, PlaceOf(weight),
                                    static_cast<float>(config_.norm_epsilon), rows, config_.hidden_size, gather,
                                    out_rows, normed_.As<void>(), stream_));
}

GpuModel::Pending GpuModel::QueueLayers(int64_t rows, int64_t position_splits) {
  // Queues x weight^T in a form; the sums of kPartial are in partial_.
  const auto product = [&](ProductMode mode, const GpuMemory& x, const at::Tensor& weight, const void* bias,
                           const GpuMemory& y) -> Pending {
    const int64_t inputs = weight.size(1), outputs = weight.size(0);
    CheckGeneration(kernels_.product(type_, mode, x.As<void>(), PlaceOf(weight), bias, rows, inputs, outputs,
                                     y.As<void>(), stream_));
    return {partial_.As<float>(), kernels_.product_splits(inputs, outputs), nullptr};
  };
  Pending pending;
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights& w = weights_.layers[i];
    QueueNorm(x_.As<void>(), pending, w.attention_norm, rows, nullptr, rows);
    pending = product(ProductMode::kPartial, normed_, w.query_key_value, nullptr, partial_);
    CheckGeneration(kernels_.attention(type_, SumsOf(w, static_cast<int32_t>(pending.splits)), CacheOf(i),
                                       places_.As<Place>(), rows, Heads(), position_splits, attention_sums_.As<float>(),
                                       attention_bounds_.As<float>(), attention_arrived_.As<int32_t>(),
                                       attended_.As<void>(), stream_));
    pending = product(ProductMode::kPartial, attended_, w.output, nullptr, partial_);
    pending.bias = PlaceOf(w.output_bias);
    QueueNorm(x_.As<void>(), pending, w.mlp_norm, rows, nullptr, rows);
    product(ProductMode::kSwiGlu, normed_, w.gate_up, PlaceOf(w.gate_up_bias), gated_);
    pending = product(ProductMode::kPartial, gated_, w.down, nullptr, partial_);
    pending.bias = PlaceOf(w.down_bias);
  }
  return pending;
}

void GpuModel::QueueSampling(void* x, const Pending& pending, int64_t rows, const int32_t* gather,
                             const int32_t* sampled, int64_t count) {
  if (count == 0) return;  // a prompt's middle: only its keys and values were wanted
  QueueNorm(x, pending, weights_.final_norm, rows, gather, count);
  CheckGeneration(kernels_.product(type_, ProductMode::kPlain, normed_.As<void>(), PlaceOf(weights_.head), nullptr,
                                   count, config_.hidden_size, config_.vocabulary_size, logits_.As<void>(), stream_));
  CheckGeneration(kernels_.sample(type_, logits_.As<void>(), count, config_.vocabulary_size, sampled,
                                  places_.As<Place>(), slots_.As<Slot>(), end_ids_.As<int32_t>(),
                                  static_cast<int32_t>(config_.end_ids.size()), sample_parts_.As<SamplePart>(),
                                  ids_.As<int32_t>(), logprobs_.As<float>(), new_tokens_, stream_));
}

// A step of `rows` rows, each of which is sampled.
void* GpuModel::DecodeGraph(int64_t rows, int64_t position_splits) {
  const auto found = graphs_.find({rows, position_splits});
  if (found != graphs_.end()) return found->second;
  void* graph = nullptr;
  CheckGeneration(runtime_.begin_graph(stream_));
  try {
    QueueEmbedding(step_rows_.As<StepRow>(), rows);
    QueueSampling(x_.As<void>(), QueueLayers(rows, position_splits), rows, nullptr, nullptr, rows);
  } catch (...) {  // of a launch, which the graph then lacks
    if (runtime_.end_graph(stream_, &graph) == nullptr) runtime_.destroy_graph(stream_.device, graph);
    throw;
  }
  CheckGeneration(runtime_.end_graph(stream_, &graph));
  graphs_[{rows, position_splits}] = graph;
  return graph;
}

void GpuModel::Decode(std::span<const int32_t> slots, int32_t positions, int32_t steps) {
  const auto rows = static_cast<int64_t>(std::bit_ceil(slots.size()));
  const auto needed = static_cast<uint64_t>((positions + kAttentionSplit - 1) / kAttentionSplit);
  const auto splits = std::min(position_splits_, static_cast<int64_t>(std::bit_ceil(needed)));
  std::vector<StepRow> step_rows(static_cast<size_t>(rows), {-1, -1, 0});
  for (size_t i = 0; i < slots.size(); ++i) step_rows[i].slot = slots[i];
  Upload(step_rows_, 0, std::span<const StepRow>(step_rows));
  void* const graph = DecodeGraph(rows, splits);
  for (int32_t step = 0; step < steps; ++step) CheckGeneration(runtime_.launch_graph(graph, stream_));
}

std::vector<Slot> GpuModel::ReadSlots() {
  std::vector<Slot> slots(static_cast<size_t>(limits_.slots));
  CheckGeneration(runtime_.wait(stream_));
  CheckGeneration(runtime_.download(slots.data(), slots_.As<void>(), slots.size() * sizeof(Slot), stream_));
  return slots;
}

void GpuModel::Fetch(int32_t slot, Completion& completion) {
  const auto first = static_cast<size_t>(slot) * static_cast<size_t>(new_tokens_), count = completion.ids.size();
  CheckGeneration(
      runtime_.download(completion.ids.data(), ids_.As<int32_t>() + first, count * sizeof(int32_t), stream_));
  CheckGeneration(
      runtime_.download(completion.logprobs.data(), logprobs_.As<float>() + first, count * sizeof(float), stream_));
}

}  // namespace kgrpo::policy
