// A run's problems, opened and checked before its folder is touched. Made by the commands `run` and `resume`, for
// loop/run.h.
#ifndef KGRPO_LOOP_RUN_PROBLEMS_H
#define KGRPO_LOOP_RUN_PROBLEMS_H

#include "config/pipeline.h"
#include "loop/parts.h"
#include "loop/problem_set.h"
#include "loop/worker_pool.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

// The problems of a run, opened, and the threads that judge its kernels. Made before the run's folder: a problem that
// is broken, or a configuration that makes no sense, then costs nobody the run that --overwrite would delete. The parts
// outlive it.
struct RunProblems {
  // `opening` is told how many are open, of how many: from any thread, one at a time.
  using Opening = std::function<void(size_t open, size_t total)>;

  RunProblems(const PipelineConfig& config, PipelineParts& parts, const Opening& opening = {});

  WorkerPool pool;
  ProblemSet train;
  std::optional<ProblemSet> heldout;  // where the run measures on them
  std::vector<std::string> notes;     // for its user: what was left out, and what the run can go on with

  // Of all problems, a line each: what the ranks of a run must have in common.
  std::string Names() const;

 private:
  RunProblems(const PipelineConfig& config, PipelineParts& parts, const std::function<void()>& opened_one);
};

}  // namespace kgrpo
#endif
