#include "base/worker_pool.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace kgrpo {

WorkerPool::WorkerPool(uint64_t threads, size_t most) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  threads = std::min<uint64_t>(threads, most);
  for (uint64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Submit(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  wake_.notify_one();  // under the lock: after its release the work may end, and its waiter may destroy the pool
}

void WorkerPool::ForEach(size_t count, const std::function<void(size_t)>& body) {
  std::vector<std::exception_ptr> failures(count);
  std::mutex mutex;
  std::condition_variable done;
  size_t left = count;
  for (size_t i = 0; i < count; ++i) {
    Submit([&, i] {
      try {
        body(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
      const std::lock_guard lock(mutex);  // notified under the lock: `done` lives on the waiter's stack
      if (--left == 0) done.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return left == 0; });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void WorkerPool::Work() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace kgrpo
