// Keeps workers with a live CUDA context ready, so that a candidate does not wait for a fresh process. A thread
// replaces taken workers, also while a kernel is timed, which was measured not to matter (notes/). Used by the
// evaluator.
#ifndef KGRPO_EVALUATOR_CUDA_WORKER_POOL_H
#define KGRPO_EVALUATOR_CUDA_WORKER_POOL_H

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "evaluator_cuda/worker.h"

namespace kgrpo::evaluator_cuda {

// [any thread]
class WorkerPool {
 public:
  // Starts `spares` workers.
  WorkerPool(const evaluator::Sandbox& sandbox, Worker::Options options, size_t spares);
  ~WorkerPool();

  // Returns a fresh worker that is ready. With `quick` it is of the kind that launches kernels quickly, if a few
  // attempts find one; otherwise preferably of the slow kind. Throws Error(KGRPO_ERROR_UNAVAILABLE) where there is
  // none.
  std::unique_ptr<Worker> Take(bool quick);
  // Starts a worker with that number of connections, which takes some 0.3 s.
  std::unique_ptr<Worker> Make(int connections) const;
  // Kills a worker; the pool's thread waits for its end.
  void Retire(std::unique_ptr<Worker> worker);

 private:
  std::unique_ptr<Worker> TakeOne(bool quick, bool* is_quick);
  void KeepFilled();

  const evaluator::Sandbox& sandbox_;
  const Worker::Options options_;
  const size_t spares_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Worker>> waiting_, retired_;
  double quickest_ = 0;  // least launch time of all workers so far, seconds
  std::string failure_;  // why the last one could not be started
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace kgrpo::evaluator_cuda

#endif
