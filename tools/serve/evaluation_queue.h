// The bounded queue of the service: requests of one or many jobs, done by a fixed number of threads. Requests take
// turns, one job each, so that a large batch does not delay a single kernel. Used by service.cc.
#ifndef KGRPO_SERVE_EVALUATION_QUEUE_H
#define KGRPO_SERVE_EVALUATION_QUEUE_H

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace kgrpo::serve {

class EvaluationQueue {
 public:
  // The waiting jobs of one request; only the queue accesses them. Jobs must not throw.
  struct Ticket {
    std::deque<std::function<void()>> jobs;
  };

  // `workers` threads; at most `limit` jobs wait.
  EvaluationQueue(size_t workers, size_t limit);
  ~EvaluationQueue();  // runs what waits, then joins
  EvaluationQueue(const EvaluationQueue&) = delete;
  EvaluationQueue& operator=(const EvaluationQueue&) = delete;

  // Queues all jobs; or queues none and returns null if they do not fit. Idle workers count as extra places. [any
  // thread]
  std::shared_ptr<Ticket> Submit(std::vector<std::function<void()>> jobs);

  // Drops the jobs that wait. [any thread]
  void Cancel(Ticket& ticket);

  size_t limit() const { return limit_; }
  size_t workers() const { return threads_.size(); }
  size_t waiting() const { return waiting_; }
  size_t running() const { return running_; }
  // Estimates the seconds until `jobs` more would fit, from the recent durations of jobs.
  double SecondsUntilRoom(size_t jobs) const;

 private:
  void Work();

  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<std::shared_ptr<Ticket>> tickets_;  // with jobs that wait; the next one first
  std::atomic<size_t> waiting_{0}, running_{0};
  std::atomic<double> mean_seconds_{0.1};
  bool stop_ = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace kgrpo::serve
#endif
