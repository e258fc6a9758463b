// Remembers kernels that beat the best known of their problem; at every checkpoint has the fastest of them judged again
// thoroughly, and keeps those that are confirmed. Used by the loop.
#ifndef KGRPO_LOOP_BEST_KERNELS_H
#define KGRPO_LOOP_BEST_KERNELS_H

#include "loop/parts.h"
#include "loop/problem_set.h"
#include "loop/worker_pool.h"
#include "store/records.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

class BestKernels {
 public:
  // `best`: what is known already, by the problem's name; `refuted`: what is known not to stand, (problem, source). All
  // references outlive this.
  BestKernels(const ProblemSet& problems, PipelineParts& parts, WorkerPool& pool, uint64_t seed,
              std::map<std::string, BestKernel> best, std::set<std::pair<std::string, std::string>> refuted);
  ~BestKernels();  // waits for what was started

  // Notes the fastest new kernels of each problem among a step's trajectories. Nothing is judged yet: that can cost
  // more than the step itself, and while a policy improves most of what leads today is beaten tomorrow.
  void Add(uint64_t step, const std::vector<TrajectoryRecord>& trajectories);
  // Starts judging what was noted, on the pool: training goes on meanwhile. One thread calls Add, Start and Finish, and
  // after Start nothing but Finish.
  void Start();
  // Waits, and returns what came of it; complete when Start was called since and the user did not stop it. A kernel
  // that did not stand is never tried again. An evaluator that failed is an error here.
  JudgedKernels Finish();

  const std::map<std::string, BestKernel>& best() const { return best_; }

 private:
  void Judge(size_t problem, std::vector<BestKernel> candidates);

  const ProblemSet& problems_;
  PipelineParts& parts_;
  WorkerPool& pool_;
  uint64_t seed_;
  std::map<std::string, BestKernel> best_;
  std::map<size_t, std::vector<BestKernel>> pending_;  // by the problem's index: the fastest first

  std::set<std::pair<std::string, std::string>> refuted_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable done_;
  size_t in_flight_ = 0;
  bool started_ = false;
  JudgedKernels judged_;
  std::exception_ptr failure_;
};

}  // namespace kgrpo
#endif
