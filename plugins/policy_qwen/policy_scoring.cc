// Scoring of sequences by a Policy: log-probabilities chunk by chunk, their gradients, and the memory that it takes.
// Declared in policy.h.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "policy_qwen/device.h"
#include "policy_qwen/policy.h"

namespace kgrpo::policy {

void Policy::CheckSequences(std::span<const ScoredSequence> sequences) const {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const std::string what = "sequence " + std::to_string(i);
    const ScoredSequence& sequence = sequences[i];
    if (sequence.prompt.empty()) throw Error(KGRPO_ERROR_INVALID, what + ": the prompt is empty");
    if (sequence.completion.empty()) throw Error(KGRPO_ERROR_INVALID, what + ": the completion is empty");
    const size_t size = sequence.prompt.size() + sequence.completion.size();
    if (static_cast<int64_t>(size) > config_.context_length) {
      throw Error(KGRPO_ERROR_INVALID, what + ": its " + std::to_string(size) + " tokens exceed the context of " +
                                           std::to_string(config_.context_length) + config_.context_note);
    }
    CheckIds(sequence.prompt, what + ", prompt");
    CheckIds(sequence.completion, what + ", completion");
  }
}

int64_t Policy::TokensAChunk() const { return options_.max_tokens_per_chunk.value_or(ops_->TokensAtATime()); }

int64_t Policy::ActivationRoom() const {
  return options_.activation_memory_mib ? *options_.activation_memory_mib << 20 : ops_->ActivationRoom();
}

// The last token of a completion is never an input; the row before each of its tokens predicts it.
std::vector<ForwardContext::Chunk> Policy::MakeChunks(std::span<const ScoredSequence> sequences) const {
  const int64_t most_rows = TokensAChunk();
  std::vector<int64_t> first_place(sequences.size());
  int64_t place = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    first_place[i] = place;
    place += static_cast<int64_t>(sequences[i].completion.size());
  }
  const auto rows_of = [&](size_t i) {
    return static_cast<int64_t>(sequences[i].prompt.size() + sequences[i].completion.size()) - 1;
  };
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return rows_of(a) < rows_of(b); });

  std::vector<ForwardContext::Chunk> chunks;
  for (size_t begin = 0; begin < order.size();) {
    ForwardContext::Chunk& chunk = chunks.emplace_back();
    int64_t rows = 0;
    size_t end = begin;
    for (; end < order.size() && (end == begin || rows + rows_of(order[end]) <= most_rows); ++end) {
      const ScoredSequence& sequence = sequences[order[end]];
      PackedSequence input;
      input.ids.assign(sequence.prompt.begin(), sequence.prompt.end());
      input.ids.insert(input.ids.end(), sequence.completion.begin(), sequence.completion.end() - 1);
      input.output_count = static_cast<int64_t>(sequence.completion.size());
      for (size_t j = 0; j < sequence.completion.size(); ++j) {
        chunk.targets.push_back(sequence.completion[j]);
        chunk.places.push_back(first_place[order[end]] + static_cast<int64_t>(j));
      }
      rows += rows_of(order[end]);
      chunk.sequences.push_back(std::move(input));
    }
    begin = end;
  }
  return chunks;
}

MemoryNeeds Policy::Memory(uint32_t ranks) const {
  MemoryNeeds needs;
  needs.part = options_.part;
  needs.trains = options_.trains;
  needs.ranks = ranks;
  needs.parameters = static_cast<uint64_t>(parameter_count());
  needs.weights = current_.buffer().nbytes();
  needs.has_adapter = adapter_.has_value();
  if (adapter_) {
    needs.trained = static_cast<uint64_t>(adapter_->factors().parameter_count());
    needs.adapter = needs.trained * sizeof(float);
    needs.merged = static_cast<uint64_t>(adapter_->merged_bytes());
  } else if (needs.trains) {
    needs.trained = needs.parameters;
    needs.masters = dtype_ == at::kBFloat16;
  }
  if (device_.is_cuda()) {
    needs.free = static_cast<uint64_t>(FreeBytesOf(device_));
    needs.total = static_cast<uint64_t>(TotalBytesOf(device_));
  }
  if (needs.trains) {
    // A longest sequence takes no less than shorter ones of as many tokens.
    const int64_t tokens = TokensAChunk(), length = std::min(tokens, config_.context_length);
    const auto bytes = [&](bool inputs_only) {
      return static_cast<uint64_t>(scorer_->ActivationBytes(length, inputs_only) / length * tokens);
    };
    needs.chunk_tokens = static_cast<uint64_t>(tokens);
    needs.activations = bytes(false);
    needs.least_activations = bytes(true) + needs.activations / static_cast<uint64_t>(config_.layer_count);
    needs.activation_limit = static_cast<uint64_t>(ActivationRoom());
  }
  needs.cache_token = static_cast<uint64_t>(2 * config_.kv_size() * config_.layer_count) * c10::elementSize(dtype_);
  if (engine_choice_.ours) {
    const uint64_t wanted =
        options_.generation_memory_mib ? static_cast<uint64_t>(*options_.generation_memory_mib) << 20 : needs.free / 4;
    needs.cache =
        std::min(wanted, static_cast<uint64_t>(options_.max_sequences * config_.context_length) * needs.cache_token);
  }
  return needs;
}

ForwardContextPtr Policy::Forward(std::span<const ScoredSequence> sequences, Copy copy, double temperature,
                                  bool need_gradient, const at::Tensor& logprobs, const at::Tensor& entropies) {
  const Weights weights = WeightsOf(copy);
  if (!std::isfinite(temperature) || temperature <= 0) {
    throw Error(KGRPO_ERROR_INVALID, "forward: the temperature must be above 0");
  }
  if (need_gradient && copy != Copy::kCurrent) {
    throw Error(KGRPO_ERROR_INVALID, "forward: only the current copy can be differentiated");
  }
  if (scorer_ == nullptr) throw Error(KGRPO_ERROR_INVALID, "forward: this policy was made to generate only");
  CheckSequences(sequences);
  UseThreads();
  const DeviceScope scope(device_);

  int64_t room = need_gradient ? ActivationRoom() : 0;
  std::vector<ForwardContext::Chunk> chunks = MakeChunks(sequences);
  for (ForwardContext::Chunk& chunk : chunks) {
    Scorer::Result result = scorer_->Forward(weights, chunk.sequences, chunk.targets, temperature, entropies.defined(),
                                             need_gradient ? &room : nullptr);
    chunk.pass = std::move(result.pass);
    const at::Tensor places = IndexTensor(chunk.places, logprobs.device());
    at::Tensor(logprobs).index_copy_(0, places, result.logprobs.to(logprobs.device()));
    if (entropies.defined()) at::Tensor(entropies).index_copy_(0, places, result.entropies.to(entropies.device()));
  }
  if (!need_gradient) return nullptr;
  return std::make_unique<ForwardContext>(
      ForwardContext{std::move(chunks), temperature, static_cast<size_t>(logprobs.size(0))});
}

void Policy::Backward(ForwardContextPtr context, const at::Tensor& d_logprobs, const GradientsFinal& final) {
  UseThreads();
  const DeviceScope scope(device_);
  const Weights weights = WeightsOf(Copy::kCurrent);
  const Weights gradients = adapter_ ? adapter_->gradient_weights() : this->gradients().weights();
  const TensorSet& set = TrainedGradients();
  const at::Tensor& buffer = set.buffer();
  std::vector<LayerPiece> pieces;
  if (final) pieces = LayerPieces(set.specs(), buffer.numel());
  const LayerDone tell = [&](int64_t layer) {
    for (const LayerPiece& piece : pieces) {
      if (piece.layer == layer) final(buffer.narrow(0, piece.begin, piece.end - piece.begin));
    }
  };
  for (ForwardContext::Chunk& chunk : context->chunks) {
    const bool is_last = &chunk == &context->chunks.back();
    const LayerDone done = final && is_last ? tell : LayerDone();
    const at::Tensor d = d_logprobs.index_select(0, IndexTensor(chunk.places, d_logprobs.device())).to(device_);
    scorer_->Backward(weights, gradients, std::move(chunk.pass), context->temperature, d, ActivationRoom(), done);
    chunk = {};
  }
}

}  // namespace kgrpo::policy
