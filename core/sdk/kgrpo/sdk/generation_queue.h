// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/generation_queue.h - kgrpo_policy_interface.generate for policies that write completions batch after batch.
//
// A thread of its own takes all requests that wait and hands them to the policy's blocking function; requests that
// arrive meanwhile are the next batch. The policy may end each completion as soon as it has it.
#ifndef KGRPO_SDK_GENERATION_QUEUE_H
#define KGRPO_SDK_GENERATION_QUEUE_H
#include <kgrpo/policy.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kgrpo {

// A copy of an accepted request. It calls `done` exactly once.
class PendingCompletion {
 public:
  explicit PendingCompletion(const kgrpo_generate_request& request)
      : prompt_(request.prompt_ids, request.prompt_ids + request.prompt_size),
        seed_(request.seed),
        done_(request.done) {
    const uint32_t known = std::min<uint32_t>(sizeof(sampling_), request.sampling->struct_size);
    std::memcpy(&sampling_, request.sampling, known);
    sampling_.struct_size = known;
  }
  PendingCompletion(PendingCompletion&& other) noexcept
      : prompt_(std::move(other.prompt_)),
        seed_(other.seed_),
        sampling_(other.sampling_),
        done_(std::exchange(other.done_, {})) {}
  PendingCompletion& operator=(PendingCompletion&&) = delete;
  ~PendingCompletion() { Fail(KGRPO_ERROR_INTERNAL, "the policy ended a batch without this completion"); }

  // Forgets `done`: the request was not accepted after all.
  void Abandon() noexcept { done_ = {}; }

  const std::vector<int32_t>& prompt() const { return prompt_; }
  uint64_t seed() const { return seed_; }
  const kgrpo_sampling& sampling() const { return sampling_; }
  bool ended() const { return done_.done == nullptr; }

  // Both end the request; only the first call has an effect.
  void Finish(const kgrpo_completion& completion) noexcept { End(&completion, nullptr); }
  void Fail(kgrpo_error_code code, std::string_view message) noexcept {
    if (!ended()) End(nullptr, MakeError(code, message));
  }

 private:
  void End(const kgrpo_completion* completion, kgrpo_error* error) noexcept {
    if (ended()) return;
    const kgrpo_completion_done done = std::exchange(done_, {});
    done.done(done.context, completion, error);
  }

  std::vector<int32_t> prompt_;
  uint64_t seed_;
  kgrpo_sampling sampling_{};
  kgrpo_completion_done done_;
};

class GenerationQueue {
 public:
  // Writes the completions of a batch, on the queue's thread, and polls Cancelled. If it throws, the requests that it
  // has not ended fail with that error. When it ends a request it holds nothing that `done` may need, such as the
  // device's lock.
  using Batch = std::function<void(std::vector<PendingCompletion>& batch)>;

  explicit GenerationQueue(Batch write) : write_(std::move(write)), thread_([this] { Work(); }) {}
  ~GenerationQueue() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    Cancel();
    wake_.notify_one();
    thread_.join();
  }
  GenerationQueue(const GenerationQueue&) = delete;
  GenerationQueue& operator=(const GenerationQueue&) = delete;

  // Copies the requests, which go into one batch. The policy must have checked them. If Submit throws (no memory), no
  // request was accepted and no `done` is called. [any thread]
  void Submit(const kgrpo_generate_request* const* requests, size_t count) {
    std::vector<PendingCompletion> accepted;
    try {
      accepted.reserve(count);
      for (size_t i = 0; i < count; ++i) accepted.emplace_back(*requests[i]);
      const std::lock_guard<std::mutex> lock(mutex_);
      waiting_.reserve(waiting_.size() + count);
      for (PendingCompletion& request : accepted) waiting_.push_back(std::move(request));
    } catch (...) {
      for (PendingCompletion& request : accepted) request.Abandon();
      throw;
    }
    wake_.notify_one();
  }

  // Ends the waiting requests at once; the batch under way ends when it polls Cancelled. [any thread]
  void Cancel() {
    std::vector<PendingCompletion> dropped;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      dropped.swap(waiting_);
      cancelled_ = working_;
    }
    for (PendingCompletion& request : dropped) request.Fail(KGRPO_ERROR_CANCELLED, "cancelled");
  }

  // Appends the waiting requests to the batch under way, for a policy that admits requests at any time. Does nothing
  // once the batch is cancelled. [the queue's thread]
  void TakeWaiting(std::vector<PendingCompletion>& batch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled_) return;
    batch.reserve(batch.size() + waiting_.size());
    for (PendingCompletion& request : waiting_) batch.push_back(std::move(request));
    waiting_.clear();
  }

  // True if the batch under way was cancelled. [the queue's thread]
  bool Cancelled() const { return cancelled_; }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::vector<PendingCompletion> batch;
      batch.swap(waiting_);
      cancelled_ = stop_;
      working_ = true;
      lock.unlock();
      Write(batch);
      batch.clear();
      lock.lock();
      working_ = false;
    }
  }

  void Write(std::vector<PendingCompletion>& batch) {
    try {
      write_(batch);
    } catch (const Error& error) {
      for (PendingCompletion& request : batch) request.Fail(error.code(), error.what());
    } catch (const std::exception& error) {
      for (PendingCompletion& request : batch) request.Fail(KGRPO_ERROR_INTERNAL, error.what());
    }
    if (Cancelled()) {
      for (PendingCompletion& request : batch) request.Fail(KGRPO_ERROR_CANCELLED, "cancelled");
    }
  }

  Batch write_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<PendingCompletion> waiting_;
  bool stop_ = false, working_ = false;
  std::atomic<bool> cancelled_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace kgrpo
#endif
