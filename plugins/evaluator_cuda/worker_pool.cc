#include "evaluator_cuda/worker_pool.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

namespace kgrpo::evaluator_cuda {
namespace {

constexpr double kAsQuick = 1.06;  // times the quickest launch so far: an H100's processes are of two kinds, 12% apart
constexpr int kAttempts = 8;

}  // namespace

WorkerPool::WorkerPool(const evaluator::Sandbox& sandbox, Worker::Options options, size_t spares)
    : sandbox_(sandbox), options_(std::move(options)), spares_(spares), thread_([this] { KeepFilled(); }) {}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkerPool::KeepFilled() {
  while (true) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock,
                  [this] { return ending_ || !retired_.empty() || (waiting_.size() < spares_ && failure_.empty()); });
    if (ending_) return;
    std::deque<std::unique_ptr<Worker>> retired = std::exchange(retired_, {});
    const size_t wanted = failure_.empty() ? spares_ - std::min(spares_, waiting_.size()) : 0;
    lock.unlock();

    std::deque<std::unique_ptr<Worker>> made;
    std::string failure;
    try {
      // All missing workers at once: their contexts are made in parallel, while the retired workers end.
      for (size_t i = 0; i < wanted; ++i) made.push_back(std::make_unique<Worker>(sandbox_, options_));
      retired.clear();
      for (; !made.empty(); made.pop_front()) {
        made.front()->WaitReady();
        lock.lock();
        const double seconds = made.front()->launch_seconds();
        if (quickest_ == 0 || seconds < quickest_) quickest_ = seconds;
        waiting_.push_back(std::move(made.front()));
        changed_.notify_all();
        lock.unlock();
      }
    } catch (const Error& error) {
      failure = error.what();
      made.clear();
      retired.clear();  // not under the lock: it waits for them
    }
    lock.lock();
    if (wanted > 0) failure_ = failure;
    changed_.notify_all();
  }
}

std::unique_ptr<Worker> WorkerPool::Take(bool quick) {
  bool is_quick = false;
  std::unique_ptr<Worker> worker = TakeOne(quick, &is_quick);
  for (int i = 0; quick && !is_quick && i < kAttempts; ++i) {
    try {
      Retire(std::exchange(worker, TakeOne(quick, &is_quick)));
    } catch (const Error&) {
      break;  // the one at hand will do
    }
  }
  return worker;
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
  failure_.clear();
  changed_.notify_all();
  changed_.wait(lock, [this] { return !waiting_.empty() || !failure_.empty(); });
  if (waiting_.empty()) throw Error(KGRPO_ERROR_UNAVAILABLE, failure_);
  const auto [quickest, slowest] = std::minmax_element(
      waiting_.begin(), waiting_.end(),
      [](const auto& one, const auto& other) { return one->launch_seconds() < other->launch_seconds(); });
  const auto taken = quick ? quickest : slowest;
  std::unique_ptr<Worker> worker = std::move(*taken);
  *is_quick = worker->launch_seconds() <= kAsQuick * quickest_;
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
