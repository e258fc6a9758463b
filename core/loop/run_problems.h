// What a run works on, opened and checked before its folder is touched. Made by the commands `run` and `resume`, for
// loop/run.h.
#ifndef KGRPO_LOOP_RUN_PROBLEMS_H
#define KGRPO_LOOP_RUN_PROBLEMS_H

#include "config/pipeline.h"
#include "loop/parts.h"
#include "loop/problem_set.h"
#include "loop/worker_pool.h"

#include <optional>
#include <string>

namespace kgrpo {

// The problems of a run, opened, and the threads that judge its kernels. Made before the run's folder: a problem that
// is broken, or a configuration that makes no sense, then costs nobody the run that --overwrite would delete. The parts
// outlive it.
struct RunProblems {
  RunProblems(const PipelineConfig& config, PipelineParts& parts);

  WorkerPool pool;
  ProblemSet train;
  std::optional<ProblemSet> heldout;  // where the run measures on them
  std::string warning;                // of what the run can go on with, for its user; or empty
};

}  // namespace kgrpo
#endif
