// Threads that run blocking work (judging kernels), first come first served. Used by the loop and by commands that
// evaluate several kernels or problems.
#ifndef KGRPO_BASE_WORKER_POOL_H
#define KGRPO_BASE_WORKER_POOL_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kgrpo {

class WorkerPool {
 public:
  // `threads` 0: as many as the machine has cores. Never more than `most`, the amount of work if that is known.
  explicit WorkerPool(uint64_t threads, size_t most = SIZE_MAX);
  ~WorkerPool();  // runs what was submitted, then joins
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // `work` must not throw. Any thread.
  void Submit(std::function<void()> work);

  // Runs `body(i)` for each i below `count` on the pool, waits for all, and throws the exception of the lowest i that
  // failed. Not from a thread of the pool.
  void ForEach(size_t count, const std::function<void(size_t)>& body);

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kgrpo
#endif
