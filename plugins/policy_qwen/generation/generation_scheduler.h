// Decides which requests share a device's slots, and when: gpu_model.h and cpu_model.cc are devices, tests have others.
// Used by generation_engine.cc.
//
// A request takes a free slot and the pages its prompt and completion can fill, in the order of arrival; prompts are
// read in chunks between the steps of those that decode. Whole pages of prompts that begin alike are computed once and
// shared, from the moment they are queued. (Not with whole_prompts.) Nothing here changes what a request computes.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GENERATION_SCHEDULER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GENERATION_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "policy_qwen/generation/page_pool.h"
#include "policy_qwen/gpu/kernels.h"
#include "policy_qwen/model/sampler.h"

namespace kgrpo::policy {

struct GenerationRequest {
  std::vector<int32_t> prompt;  // valid ids, at least one, fewer than the context holds
  uint64_t seed = 0;            // of the sequence: the draw at position i of the completion depends on (seed, i)
};

struct Completion {
  size_t request = 0;  // as submitted
  std::vector<int32_t> ids;
  std::vector<float> logprobs;  // of ids, under logits / temperature over the full vocabulary
  bool ended = false;           // by an end token, which is the last of ids; else by length
};

// Operations that the scheduler needs of a device. They run in the order of the calls.
class GenerationDevice {
 public:
  virtual ~GenerationDevice() = default;
  // Makes `start` the state of a slot, whose positions lie in `pages`.
  virtual void Admit(int32_t slot, const Slot& start, std::span<const int32_t> pages) = 0;
  // Computes rows of prompts, and samples the first token of the slots of rows[sampled[i]].
  virtual void ReadPrompts(std::span<const StepRow> rows, std::span<const int32_t> sampled) = 0;
  // Generates the next `steps` tokens of each of `slots`. No slot attends to more than `positions` positions meanwhile.
  // A slot that ends earlier then stays as it is.
  virtual void Decode(std::span<const int32_t> slots, int32_t positions, int32_t steps) = 0;
  virtual std::vector<Slot> ReadSlots() = 0;  // waits for all of the above
  // The first `completion.ids.size()` tokens and log-probabilities of a slot.
  virtual void Fetch(int32_t slot, Completion& completion) = 0;
  virtual void Clear() {}  // frees what it keeps of slots that have not ended
};

struct SchedulerLimits {
  int32_t slots = 256;
  int32_t pages = 0;                 // of the cache
  int32_t context_length = 0;        // tokens
  int32_t rows_a_read = 2048;        // of prompts
  int32_t steps_between_checks = 8;  // of decoding, between checks for slots that ended
  // Prompts are read whole, one at a time with those that equal it, and decoding waits until all are read.
  bool whole_prompts = false;
};

class GenerationScheduler {
 public:
  GenerationScheduler(GenerationDevice& device, const SchedulerLimits& limits)
      : device_(device), limits_(limits), pool_(limits.pages), slots_(static_cast<size_t>(limits.slots)) {}

  // Queues a request; its completion will name `id`. Throws KGRPO_ERROR_INVALID when it needs more pages than there
  // are.
  void Submit(size_t id, const GenerationRequest& request, const SamplingOptions& options);

  // True if no request waits or is in flight. The parameters may change only then, when no prompt is kept for sharing.
  bool idle() const { return waiting_.empty() && busy_ == 0; }

  // Admits requests, reads a chunk of prompts, decodes a few steps, and hands finished completions to `sink`.
  void Turn(const std::function<void(const Completion&)>& sink);

  // Writes a completion of each request and hands it to `sink` as soon as it is finished, in any order. Calls
  // `cancelled`, which may be empty, before every turn, and throws KGRPO_ERROR_CANCELLED if it returns true. No other
  // request may be in flight.
  void Run(std::span<const GenerationRequest> requests, const SamplingOptions& options,
           const std::function<void(const Completion&)>& sink, const std::function<bool()>& cancelled = {});

  // Drops all requests.
  void Clear();

  int64_t rows_read() const { return rows_read_; }  // of prompts, so far; shared rows do not count

 private:
  struct Request {
    size_t id;
    GenerationRequest request;
    SamplingOptions options;
    int32_t limit;  // tokens the completion may have
  };
  struct Place {
    bool busy = false;
    Request request;
    std::vector<int32_t> pages;
    int32_t read = 0;   // tokens of the prompt that are computed or queued
    int32_t count = 0;  // tokens sampled
    bool is_read() const { return read == static_cast<int32_t>(request.request.prompt.size()); }
  };

  void Admit();
  void ReadChunk();
  void DecodeSteps();
  void HandOver(const std::function<void(const Completion&)>& sink);
  int32_t PagesOf(const Request& request) const;

  GenerationDevice& device_;
  SchedulerLimits limits_;
  PagePool pool_;
  std::deque<Request> waiting_;
  std::deque<int32_t> reading_;  // slots whose prompts are not read yet, in the order of admission
  std::vector<Place> slots_;
  int32_t busy_ = 0;
  int64_t rows_read_ = 0;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GENERATION_SCHEDULER_H_
