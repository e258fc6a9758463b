// Remembers kernels that beat the best known one of their problem. At every checkpoint the fastest of them are judged
// again thoroughly, and confirmed ones are kept. Used by the loop.
#ifndef KGRPO_LOOP_BEST_KERNELS_H
#define KGRPO_LOOP_BEST_KERNELS_H

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/worker_pool.h"
#include "loop/problem_set.h"
#include "plugin/parts.h"
#include "store/records.h"

namespace kgrpo {

class BestKernels {
 public:
  // `best`: the best confirmed kernels so far, by the problem's name. `refuted`: (problem, source) of kernels that an
  // earlier thorough evaluation refuted. All references outlive this.
  BestKernels(const ProblemSet& problems, PipelineParts& parts, WorkerPool& pool, uint64_t seed,
              std::map<std::string, BestKernel> best, std::set<std::pair<std::string, std::string>> refuted);
  ~BestKernels();  // waits for evaluations that Start began

  // Notes the fastest new kernels of each problem among a step's trajectories. Judges nothing yet: that can cost more
  // than the step itself, and while a policy improves, later steps beat most of these kernels.
  void Add(uint64_t step, const std::vector<TrajectoryRecord>& trajectories);
  // Starts judging the noted kernels on the pool, while training continues. One thread calls Add, Start and Finish;
  // after Start it may call only Finish.
  void Start();
  // Waits, and returns the results. They are complete if Start was called since the last Finish, the user did not stop
  // the run, and the evaluator answered: kernels for which it failed wait for the next Start. A refuted kernel is never
  // judged again. Throws an evaluator's error that ends the run (loop/round_faults.h).
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
  std::map<size_t, std::vector<BestKernel>> unjudged_;  // as pending_: the evaluator failed
  std::exception_ptr failure_;
};

// Writes kernels/PROBLEM/{best.cu, evidence.json}: the kernel, with what was found about it.
void WriteBestKernel(const std::filesystem::path& directory, const BestKernel& kernel);

}  // namespace kgrpo
#endif
