// A run's problems, opened and checked before its folder is touched. Made by the commands `run` and `resume`, for
// loop/run.h.
#ifndef KGRPO_LOOP_RUN_PROBLEMS_H
#define KGRPO_LOOP_RUN_PROBLEMS_H

#include "config/pipeline.h"
#include "loop/parts.h"
#include "loop/problem_set.h"
#include "loop/worker_pool.h"
#include "store/database.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

// The problems of a run, opened, and the threads that judge its kernels. Made before the run's folder, so that a broken
// problem or a wrong configuration fails before --overwrite deletes the old run. The parts outlive it.
struct RunProblems {
  // Receives the number of open problems and the total: from any thread, one call at a time.
  using Opening = std::function<void(size_t open, size_t total)>;

  RunProblems(const PipelineConfig& config, PipelineParts& parts, const Opening& opening = {});

  WorkerPool pool;
  ProblemSet train;
  std::optional<ProblemSet> heldout;  // set where the run measures on held-out problems
  std::vector<std::string> notes;     // for the user: problems left out, and warnings

  // Problems are drawn by their index in the list, so a resumed run needs the list that it began with. Throws
  // KGRPO_ERROR_INVALID, with the names of problems that are missing or new, if the run recorded another one.
  void RequireSame(RunDatabase& database) const;
  // Returns the names of all problems, one a line. They must be equal on all ranks of a run.
  std::string Names() const;

 private:
  RunProblems(const PipelineConfig& config, PipelineParts& parts, const std::function<void()>& opened_one);
};

}  // namespace kgrpo
#endif
