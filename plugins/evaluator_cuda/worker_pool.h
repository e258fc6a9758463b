// Keeps workers with a live CUDA context ready, so that a candidate does not wait for a fresh process: one more than
// are about to be taken. A thread starts all that are missing at once, since a context in the making adds noise to what
// is timed meanwhile. Used by the evaluator.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "evaluator_cuda/worker.h"

namespace kgrpo::evaluator_cuda {

// [any thread]
class WorkerPool {
 public:
  // Keeps at most `most` workers ready; one, if `crowded`, asked after each start, says that the device has little
  // memory left.
  WorkerPool(const evaluator::Sandbox& sandbox, Worker::Options options, size_t most, std::function<bool()> crowded);
  ~WorkerPool();

  // Says that the caller will soon take `count` workers, for as long as this lives.
  class Demand {
   public:
    Demand(WorkerPool& pool, size_t count) : pool_(pool), count_(count) { pool_.AddDemand(count_, 0); }
    ~Demand() { pool_.AddDemand(0, count_); }
    Demand(const Demand&) = delete;
    Demand& operator=(const Demand&) = delete;

   private:
    WorkerPool& pool_;
    const size_t count_;
  };

  // Waits until no worker is being started.
  void WaitUntilFilled();
  // Returns a fresh worker that is ready. With `quick` it is of the kind that launches kernels quickly, if a few
  // attempts find one; otherwise preferably of the slow kind. Throws Error(KGRPO_ERROR_UNAVAILABLE), or OutOfMemory,
  // where there is none.
  std::unique_ptr<Worker> Take(bool quick);
  // True if no worker so far launched kernels notably quicker.
  bool IsQuick(const Worker& worker);
  // Takes back a worker that has not been used.
  void GiveBack(std::unique_ptr<Worker> worker);
  // Starts a worker with that number of connections, which takes some 0.3 s.
  std::unique_ptr<Worker> Make(int connections) const;
  // Kills a worker; the pool's thread waits for its end.
  void Retire(std::unique_ptr<Worker> worker);

 private:
  void AddDemand(size_t more, size_t less);
  std::unique_ptr<Worker> TakeOne(bool quick, bool* is_quick);
  bool IsQuickLocked(const Worker& worker) const;
  size_t Missing() const;
  void KeepFilled();

  const evaluator::Sandbox& sandbox_;
  const Worker::Options options_;
  const size_t most_;
  const std::function<bool()> crowded_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Worker>> waiting_, retired_;
  size_t starting_ = 0;  // workers whose contexts are being made
  size_t demand_ = 0;    // workers about to be taken
  bool is_crowded_ = false;
  double quickest_ = 0;         // least launch time of all workers so far, seconds
  std::exception_ptr failure_;  // why the last one could not be started
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace kgrpo::evaluator_cuda
