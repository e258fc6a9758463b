#include "policy_qwen/model/generator.h"

#include <ATen/ops/cat.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "policy_qwen/model/decoder.h"
#include "policy_qwen/model/key_value_cache.h"
#include "policy_qwen/model/ops.h"
#include "policy_qwen/model/random.h"
#include "policy_qwen/model/tensors.h"

namespace kgrpo::policy {
namespace {

// Sequences that have ended are dropped from the batch once the others are at most this part of it: copying the cache
// costs about as much as computing a few rows in vain.
constexpr double kDropBelow = 0.75;

// Requests generated together, and their state.
class Batch {
 public:
  Batch(const ModelConfig& config, const Weights& weights, RotaryTable& rotary, const SamplingOptions& options,
        const std::vector<GenerationRequest>& requests, std::span<const size_t> members)
      : config_(config),
        weights_(weights),
        rotary_(rotary),
        options_(options),
        device_(weights.embedding.device()),
        cache_(MakeCache(config, weights, options, requests, members)),
        decoder_(MakeDecoder(config, weights, rotary)) {
    for (const size_t member : members) {
      const GenerationRequest& request = requests[member];
      Row row;
      row.request = &request;
      row.completion.request = member;
      row.position = static_cast<int64_t>(request.prompt.size());
      row.limit = std::min(options.max_new_tokens, config.context_length - row.position);
      rows_.push_back(std::move(row));
    }
  }

  void Run(int64_t max_tokens_per_chunk, const std::function<void(const Completion&)>& sink,
           const std::function<bool()>& cancelled) {
    const std::function<void()> stop_if_cancelled = [&] {
      if (cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "cancelled while generating");
    };
    Append(ReadPrompts(max_tokens_per_chunk, stop_if_cancelled), sink);
    while (DropFinished()) {
      stop_if_cancelled();
      Append(Step(), sink);
    }
  }

 private:
  struct Row {
    const GenerationRequest* request;
    Completion completion;
    int64_t position;  // of the next token in the context
    int64_t limit;     // tokens the completion may have
    bool finished = false;
  };

  static KeyValueCache MakeCache(const ModelConfig& config, const Weights& weights, const SamplingOptions& options,
                                 const std::vector<GenerationRequest>& requests, std::span<const size_t> members) {
    std::vector<int64_t> lengths;
    int64_t longest = 0, columns = 0;
    for (const size_t member : members) {
      const int64_t length = static_cast<int64_t>(requests[member].prompt.size());
      lengths.push_back(length);
      longest = std::max(longest, length);
    }
    columns = longest + options.max_new_tokens;
    return KeyValueCache(config, lengths, longest, columns, weights.embedding.scalar_type(),
                         weights.embedding.device());
  }

  // Fills the cache from the prompts and returns the logits after each row's. Rows of the same prompt are neighbours.
  at::Tensor ReadPrompts(int64_t max_tokens_per_chunk, const std::function<void()>& stop_if_cancelled) {
    // On a CPU prompts are read one by one: the last bit of libtorch's products may depend on what else is in the
    // batch.
    const int64_t limit = device_.is_cpu() ? 1 : max_tokens_per_chunk;
    std::vector<at::Tensor> hidden;
    std::vector<int64_t> hidden_of_row;
    int64_t unique_count = 0;
    size_t begin = 0;
    while (begin < rows_.size()) {
      stop_if_cancelled();
      std::vector<PackedSequence> prompts;
      std::vector<int64_t> first_packed_row;  // of each row's prompt
      int64_t tokens = 0, start = 0;
      size_t end = begin;
      for (; end < rows_.size(); ++end) {
        const std::vector<int32_t>& prompt = rows_[end].request->prompt;
        if (end == begin || prompt != rows_[end - 1].request->prompt) {
          const int64_t length = static_cast<int64_t>(prompt.size());
          if (end > begin && tokens + length > limit) break;
          start = tokens;
          tokens += length;
          prompts.push_back({prompt, 1});
          ++unique_count;
        }
        first_packed_row.push_back(start);
        hidden_of_row.push_back(unique_count - 1);
      }
      const at::Tensor index = PromptIndex(begin, first_packed_row);
      const auto write = [&](int64_t layer, const at::Tensor& keys, const at::Tensor& values) {
        const std::vector<int64_t> shape = {static_cast<int64_t>(end - begin), config_.kv_head_count, prompt_columns(),
                                            config_.head_size};
        cache_.WritePrompts(layer, static_cast<int64_t>(begin),
                            GatherRows(keys.view({-1, config_.head_size}), index).view(shape),
                            GatherRows(values.view({-1, config_.head_size}), index).view(shape));
      };
      const PackedBatch packed = PackSequences(config_, prompts, rotary_, device_);
      hidden.push_back(TransformerForward(config_, weights_, packed, nullptr, write));
      begin = end;
    }
    const at::Tensor all = hidden.size() == 1 ? hidden[0] : at::cat(hidden);
    return ComputeLogits(GatherRows(all, IndexTensor(hidden_of_row, device_)));
  }

  int64_t prompt_columns() const { return static_cast<int64_t>(rows_.front().request->prompt.size()); }  // the longest

  // For every (row, kv head, prompt column) of the cache the packed head it is copied from, -1 before a prompt's begin.
  at::Tensor PromptIndex(size_t begin, const std::vector<int64_t>& first_packed_row) const {
    std::vector<int64_t> index;
    index.reserve(first_packed_row.size() * static_cast<size_t>(config_.kv_head_count * prompt_columns()));
    for (size_t i = 0; i < first_packed_row.size(); ++i) {
      const int64_t padding = prompt_columns() - static_cast<int64_t>(rows_[begin + i].request->prompt.size());
      for (int64_t head = 0; head < config_.kv_head_count; ++head) {
        for (int64_t column = 0; column < prompt_columns(); ++column) {
          const int64_t packed_row = first_packed_row[i] + column - padding;
          index.push_back(column < padding ? -1 : packed_row * config_.kv_head_count + head);
        }
      }
    }
    return IndexTensor(index, device_);
  }

  at::Tensor ComputeLogits(const at::Tensor& hidden) const {
    return decoder_->Logits(hidden, options_.temperature == 0.0 ? 1.0 : options_.temperature);
  }

  // Samples the next token of every row; hands over completions that this ends.
  void Append(const at::Tensor& logits, const std::function<void(const Completion&)>& sink) {
    std::vector<double> uniforms;
    for (const Row& row : rows_) uniforms.push_back(RandomUniform(row.request->seed, row.completion.ids.size()));
    const SampledTokens sampled = SampleTokens(logits, options_, uniforms);
    for (size_t i = 0; i < rows_.size(); ++i) {
      Row& row = rows_[i];
      if (row.finished) continue;
      const int32_t id = static_cast<int32_t>(sampled.ids[i]);
      row.completion.ids.push_back(id);
      row.completion.logprobs.push_back(sampled.logprobs[i]);
      row.completion.ended = std::ranges::find(config_.end_ids, id) != config_.end_ids.end();
      row.finished = row.completion.ended || static_cast<int64_t>(row.completion.ids.size()) == row.limit;
      if (row.finished) sink(row.completion);
    }
  }

  // Drops finished rows once that pays. Returns false once all rows are finished.
  bool DropFinished() {
    std::vector<int64_t> live;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].finished) live.push_back(static_cast<int64_t>(i));
    }
    if (live.empty()) return false;
    if (static_cast<double>(live.size()) <= kDropBelow * static_cast<double>(rows_.size())) {
      cache_.Keep(live);
      std::erase_if(rows_, [](const Row& row) { return row.finished; });
    }
    return true;
  }

  // Feeds the last token of every row, and returns the logits after it.
  at::Tensor Step() {
    std::vector<int64_t> ids, positions;
    for (Row& row : rows_) {
      ids.push_back(row.completion.ids.back());
      positions.push_back(row.position);
      if (!row.finished) ++row.position;
    }
    cache_.OpenColumn();
    return ComputeLogits(decoder_->Step(ids, positions, cache_));
  }

  const ModelConfig& config_;
  const Weights& weights_;
  RotaryTable& rotary_;
  const SamplingOptions& options_;
  at::Device device_;
  std::vector<Row> rows_;
  KeyValueCache cache_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace

void Generate(const ModelConfig& config, const Weights& weights, RotaryTable& rotary, const GenerationLimits& limits,
              const std::vector<GenerationRequest>& requests, const SamplingOptions& options,
              const std::function<void(const Completion&)>& sink, const std::function<bool()>& cancelled) {
  // Longest prompts first, identical ones together: batches hold prompts of about the same length.
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const std::vector<int32_t>& first = requests[a].prompt;
    const std::vector<int32_t>& second = requests[b].prompt;
    return first.size() != second.size() ? first.size() > second.size() : first < second;
  });
  const size_t batch_size = static_cast<size_t>(limits.max_sequences);
  for (size_t begin = 0; begin < order.size(); begin += batch_size) {
    const std::span<const size_t> members =
        std::span<const size_t>(order).subspan(begin, std::min(batch_size, order.size() - begin));
    Batch(config, weights, rotary, options, requests, members).Run(limits.max_tokens_per_chunk, sink, cancelled);
  }
}

}  // namespace kgrpo::policy
