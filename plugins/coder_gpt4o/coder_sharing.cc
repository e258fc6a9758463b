// The part of coder.h for mode cache, in which no question is paid for twice. A job whose question is already being
// asked, by this process or by another one that shares the cache, waits for the answer.
#include "coder_gpt4o/client/signals_blocked.h"
#include "coder_gpt4o/coder.h"
#include "coder_gpt4o/job.h"

#include <kgrpo/sdk/error.h>

#include <chrono>
#include <utility>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr std::chrono::milliseconds kLook(50);  // polling interval for other processes' answers

}  // namespace

bool Coder::WaitsForSame(const JobPointer& job) {
  if (options_.mode != Mode::kCache) return false;
  const std::lock_guard lock(mutex_);
  if (job->cancels() != cancels_) return false;  // will not be sent, so no job may wait for it
  const auto [asked, is_first] = asking_.try_emplace(job->request.digest, SameContent{job, {}, nullptr});
  if (!is_first) asked->second.waiting.push_back(job);
  return !is_first;
}

// Returns the jobs that wait for this job's answer, and ends its turn: later jobs find its result in the cache. Call
// with mutex_ held.
std::vector<Coder::JobPointer> Coder::StopWaitingFor(const JobPointer& asker) {
  const auto asked = asking_.find(asker->request.digest);
  if (asked == asking_.end() || asked->second.asker != asker) return {};
  std::vector<JobPointer> waiting = std::move(asked->second.waiting);
  asking_.erase(asked);
  return waiting;
}

// Called for this process's first job with a question. Sends it, or waits for the process that is asking it.
void Coder::AskAsFirst(const JobPointer& job) {
  try {
    if (options_.mode == Mode::kCache) {
      if (!LockQuestion(job)) return WaitForOther(job);
      // The process that held the lock may have recorded an answer since the last look.
      if (UseRecorded(job, /*again=*/true)) return;
    }
  } catch (const Error& error) {
    return Fail(job, error.code(), error.what());
  } catch (const std::exception& error) {
    return Fail(job, KGRPO_ERROR_INTERNAL, error.what());
  }
  Hold(job);
}

// Returns false if another process is asking the question.
bool Coder::LockQuestion(const JobPointer& job) {
  const std::lock_guard lock(mutex_);
  const auto asked = asking_.find(job->request.digest);
  if (asked == asking_.end() || asked->second.asker != job) return true;  // cancelled: Hold will not send it
  asked->second.lock = locks_->TryLock(job->request.service + "\n" + job->request.digest);
  return asked->second.lock != nullptr;
}

void Coder::WaitForOther(const JobPointer& job) {
  bool cancelled = false, tell = false;
  {
    const std::lock_guard lock(mutex_);
    cancelled = job->cancels() != cancels_;
    if (!cancelled) {
      if (!watcher_.joinable()) {
        const SignalsBlocked blocked;
        watcher_ = std::thread([this] { WatchOthers(); });
        pthread_setname_np(watcher_.native_handle(), "kgrpo-sharing");
      }
      asked_by_others_.push_back(job);
      others_changed_.notify_one();
      tell = !std::exchange(told_of_others_, true);
    }
  }
  if (cancelled) return job->End(KGRPO_CODER_FAILED, "cancelled");
  if (tell && reports_.warn)
    reports_.warn("another process with the same cache is asking the same questions: waiting for its answers");
}

// Runs on a thread of its own, started when the first job has to wait for another process.
void Coder::WatchOthers() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    others_changed_.wait(lock, [this] { return ends_ || !asked_by_others_.empty(); });
    others_changed_.wait_for(lock, kLook, [this] { return ends_; });
    const std::vector<JobPointer> jobs = std::exchange(asked_by_others_, {});
    lock.unlock();
    for (const JobPointer& job : jobs) AskAsFirst(job);
    lock.lock();
  }
}

void Coder::EndWatching() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  others_changed_.notify_one();
  if (watcher_.joinable()) watcher_.join();
}

}  // namespace kgrpo::coder_gpt4o
