#include "policy_qwen/generation/generation_scheduler.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <string>

namespace kgrpo::policy {

// The last token of a completion is never an input.
int32_t GenerationScheduler::PagesOf(const Request& request) const {
  const auto positions = static_cast<int32_t>(request.request.prompt.size()) + request.limit - 1;
  return (positions + kPageSize - 1) / kPageSize;
}

void GenerationScheduler::Submit(size_t id, const GenerationRequest& request, const SamplingOptions& options) {
  const int64_t room = limits_.context_length - static_cast<int64_t>(request.prompt.size());
  Request added = {id, request, options, static_cast<int32_t>(std::min(options.max_new_tokens, room))};
  if (PagesOf(added) > pool_.size()) {
    throw Error(KGRPO_ERROR_INVALID,
                "a prompt of " + std::to_string(request.prompt.size()) + " tokens with " + std::to_string(added.limit) +
                    " new ones needs " + std::to_string(PagesOf(added) * kPageSize) + " positions, and the cache has " +
                    std::to_string(pool_.size() * kPageSize) + "; raise generation_memory_mib or lower max_new_tokens");
  }
  waiting_.push_back(std::move(added));
}

void GenerationScheduler::Turn(const std::function<void(const Completion&)>& sink) {
  Admit();
  ReadChunk();
  DecodeSteps();
  HandOver(sink);
  if (idle()) pool_.Forget();
}

void GenerationScheduler::Run(std::span<const GenerationRequest> requests, const SamplingOptions& options,
                              const std::function<void(const Completion&)>& sink,
                              const std::function<bool()>& cancelled) {
  try {
    for (size_t i = 0; i < requests.size(); ++i) Submit(i, requests[i], options);
    while (!idle()) {
      if (cancelled && cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "cancelled while generating");
      Turn(sink);
    }
  } catch (...) {
    Clear();
    throw;
  }
}

void GenerationScheduler::Admit() {
  for (int32_t slot = 0; slot < limits_.slots && !waiting_.empty(); ++slot) {
    Place& place = slots_[static_cast<size_t>(slot)];
    if (place.busy) continue;
    Request& next = waiting_.front();
    const std::vector<int32_t>& prompt = next.request.prompt;
    // At least the prompt's last token is computed: its logits are wanted.
    const auto shareable = limits_.whole_prompts ? 0 : static_cast<int32_t>((prompt.size() - 1) / kPageSize);
    int32_t shared = 0;
    std::optional<std::vector<int32_t>> pages = pool_.Take(prompt, shareable, PagesOf(next), shared);
    if (!pages) return;  // until others give theirs back
    place = {.busy = true, .request = std::move(next), .pages = std::move(*pages), .read = shared * kPageSize};
    waiting_.pop_front();
    ++busy_;
    const SamplingOptions& options = place.request.options;
    const Slot start = {.seed = place.request.request.seed,
                        .top_p = options.top_p,
                        .min_p = options.min_p,
                        .temperature = static_cast<float>(options.temperature),
                        .top_k = static_cast<int32_t>(std::min<int64_t>(options.top_k, kMaxVocabulary)),
                        .limit = place.request.limit,
                        .token = 0,
                        .position = 0,
                        .count = 0,
                        .end = SlotEnd::kNone};
    device_.Admit(slot, start, place.pages);
    reading_.push_back(slot);
  }
}

// Queues rows of prompts, the longest waiting first: a page that a later prompt shares is always queued before it or
// in the same step.
void GenerationScheduler::ReadChunk() {
  std::vector<StepRow> rows;
  std::vector<int32_t> sampled;
  const auto prompt_of = [&](int32_t slot) -> const std::vector<int32_t>& {
    return slots_[static_cast<size_t>(slot)].request.request.prompt;
  };
  auto limit = static_cast<size_t>(limits_.rows_a_read);
  if (limits_.whole_prompts && !reading_.empty()) {
    const std::vector<int32_t>& first = prompt_of(reading_.front());
    const auto others =
        std::stable_partition(reading_.begin(), reading_.end(), [&](int32_t slot) { return prompt_of(slot) == first; });
    limit = first.size() * static_cast<size_t>(others - reading_.begin());
  }
  while (!reading_.empty() && rows.size() < limit) {
    const int32_t slot = reading_.front();
    Place& place = slots_[static_cast<size_t>(slot)];
    const std::vector<int32_t>& prompt = prompt_of(slot);
    while (!place.is_read() && rows.size() < limit) {
      rows.push_back({slot, place.read, prompt[static_cast<size_t>(place.read)]});
      ++place.read;
    }
    if (!place.is_read()) break;
    sampled.push_back(static_cast<int32_t>(rows.size()) - 1);
    place.count = 1;
    reading_.pop_front();
  }
  if (!rows.empty()) device_.ReadPrompts(rows, sampled);
  rows_read_ += static_cast<int64_t>(rows.size());
}

void GenerationScheduler::DecodeSteps() {
  if (limits_.whole_prompts && !reading_.empty()) return;
  std::vector<int32_t> decoding;
  int32_t positions = 0;
  // One step only while prompts are left to read: more slots can share the later steps.
  int32_t steps = reading_.empty() ? limits_.steps_between_checks : 1;
  for (int32_t slot = 0; slot < limits_.slots; ++slot) {
    const Place& place = slots_[static_cast<size_t>(slot)];
    if (!place.busy || !place.is_read() || place.count >= place.request.limit) continue;
    decoding.push_back(slot);
    steps = std::min(steps, place.request.limit - place.count);
    positions = std::max(positions, static_cast<int32_t>(place.request.request.prompt.size()) + place.count);
  }
  if (!decoding.empty()) device_.Decode(decoding, positions + steps - 1, steps);
}

void GenerationScheduler::HandOver(const std::function<void(const Completion&)>& sink) {
  if (busy_ == static_cast<int32_t>(reading_.size())) return;  // nothing was sampled
  const std::vector<Slot> state = device_.ReadSlots();
  for (int32_t slot = 0; slot < limits_.slots; ++slot) {
    Place& place = slots_[static_cast<size_t>(slot)];
    if (!place.busy || !place.is_read()) continue;
    const Slot& now = state[static_cast<size_t>(slot)];
    place.count = now.count;
    if (now.end == SlotEnd::kNone) continue;
    Completion completion;
    completion.request = place.request.id;
    completion.ids.resize(static_cast<size_t>(now.count));
    completion.logprobs.resize(static_cast<size_t>(now.count));
    completion.ended = now.end == SlotEnd::kStop;
    device_.Fetch(slot, completion);
    pool_.Release(place.pages);
    place = Place();
    --busy_;
    sink(completion);
  }
}

void GenerationScheduler::Clear() {
  waiting_.clear();
  reading_.clear();
  for (Place& place : slots_) place = Place();
  busy_ = 0;
  pool_.Clear();
  device_.Clear();
}

}  // namespace kgrpo::policy
