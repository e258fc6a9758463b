#include "evaluator_cuda/worker_pool.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace kgrpo::evaluator_cuda {
namespace {

constexpr double kAsQuick = 1.06;  // times the quickest launch so far: an H100's processes are of two kinds, 12% apart
constexpr int kAttempts = 8;
constexpr size_t kFewestReady = 2;  // a problem's first kernel needs a process, and its reference another
constexpr std::chrono::milliseconds kPollWorkers(2);

}  // namespace

WorkerPool::WorkerPool(const evaluator::Sandbox& sandbox, Worker::Options options, size_t most,
                       std::function<bool()> crowded)
    : sandbox_(sandbox), options_(std::move(options)), most_(most), crowded_(std::move(crowded)), thread_([this] {
        KeepFilled();
      }) {}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkerPool::AddDemand(size_t more, size_t less) {
  const std::lock_guard<std::mutex> lock(mutex_);
  demand_ = demand_ + more - less;
  changed_.notify_all();
}

// Returns how many workers to start: all that are missing at once, when none is being started. A context in the making
// adds noise to what is timed meanwhile (12 rounds became 20 to 50), so there are fewer such times than workers.
size_t WorkerPool::Missing() const {
  const size_t wanted = is_crowded_ ? 1 : std::min(most_, std::max(kFewestReady, demand_ + 1)),
               there = waiting_.size() + starting_;
  return failure_ || starting_ > 0 ? 0 : wanted - std::min(wanted, there);
}

void WorkerPool::KeepFilled() {
  std::deque<std::unique_ptr<Worker>> starting, retired;
  bool is_crowded = false;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    for (std::unique_ptr<Worker>& worker : retired_) retired.push_back(std::move(worker));
    retired_.clear();
    is_crowded_ = is_crowded;
    const size_t missing = Missing();
    starting_ += missing;
    lock.unlock();

    std::deque<std::unique_ptr<Worker>> ready;
    std::exception_ptr failure;
    try {
      for (size_t i = 0; i < missing; ++i) starting.push_back(std::make_unique<Worker>(sandbox_, options_));
      if (missing > 0) is_crowded = crowded_();
    } catch (const Error&) {
      failure = std::current_exception();
    }
    std::erase_if(starting, [&](std::unique_ptr<Worker>& worker) {
      if (!worker->HasAnswered()) return false;
      try {
        worker->WaitReady();
        ready.push_back(std::move(worker));
      } catch (const Error&) {
        failure = std::current_exception();
      }
      return true;
    });
    std::erase_if(retired, [](const std::unique_ptr<Worker>& worker) { return worker->HasEnded(); });

    lock.lock();
    starting_ = starting.size();
    if (failure) failure_ = failure;
    for (std::unique_ptr<Worker>& worker : ready) {
      if (quickest_ == 0 || worker->launch_seconds() < quickest_) quickest_ = worker->launch_seconds();
      waiting_.push_back(std::move(worker));
    }
    changed_.notify_all();
    const auto has_work = [this] { return ending_ || !retired_.empty() || Missing() > 0; };
    if (starting.empty() && retired.empty()) {
      changed_.wait(lock, has_work);
    } else {
      changed_.wait_for(lock, kPollWorkers, has_work);
    }
  }
}

void WorkerPool::WaitUntilFilled() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return starting_ == 0 && Missing() == 0; });
}

std::unique_ptr<Worker> WorkerPool::Take(bool quick) {
  bool is_quick = false;
  std::unique_ptr<Worker> worker = TakeOne(quick, &is_quick);
  for (int i = 0; quick && !is_quick && i < kAttempts; ++i) {
    try {
      const Demand several(*this, kFewestReady);  // one of them may be
      Retire(std::exchange(worker, TakeOne(quick, &is_quick)));
    } catch (const Error&) {
      break;  // the one at hand will do
    }
  }
  return worker;
}

bool WorkerPool::IsQuickLocked(const Worker& worker) const { return worker.launch_seconds() <= kAsQuick * quickest_; }

bool WorkerPool::IsQuick(const Worker& worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return IsQuickLocked(worker);
}

void WorkerPool::GiveBack(std::unique_ptr<Worker> worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(std::move(worker));
  changed_.notify_all();
}

std::unique_ptr<Worker> WorkerPool::Make(int connections) const {
  Worker::Options options = options_;
  options.connections = connections;
  auto worker = std::make_unique<Worker>(sandbox_, options);
  worker->WaitReady();
  return worker;
}

std::unique_ptr<Worker> WorkerPool::TakeOne(bool quick, bool* is_quick) {
  std::unique_lock<std::mutex> lock(mutex_);
  // An earlier failure may be over: the pool tries again, and a second failure counts.
  failure_ = nullptr;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !waiting_.empty() || (failure_ && starting_ == 0); });
  if (waiting_.empty()) std::rethrow_exception(failure_);
  const auto [quickest, slowest] = std::minmax_element(
      waiting_.begin(), waiting_.end(),
      [](const auto& one, const auto& other) { return one->launch_seconds() < other->launch_seconds(); });
  const auto taken = quick ? quickest : slowest;
  std::unique_ptr<Worker> worker = std::move(*taken);
  *is_quick = IsQuickLocked(*worker);
  waiting_.erase(taken);
  changed_.notify_all();
  return worker;
}

void WorkerPool::Retire(std::unique_ptr<Worker> worker) {
  if (worker == nullptr) return;
  worker->Kill();  // it must not outlive its verdict, however long the pool's thread is busy
  const std::lock_guard<std::mutex> lock(mutex_);
  retired_.push_back(std::move(worker));
  changed_.notify_all();
}

}  // namespace kgrpo::evaluator_cuda
