// A run's problems, opened and checked before its folder is touched. Made by cli/open_run.cc, for loop/run.h and for
// the command `check`.
#ifndef KGRPO_LOOP_RUN_PROBLEMS_H
#define KGRPO_LOOP_RUN_PROBLEMS_H

#include "base/worker_pool.h"
#include "config/findings.h"
#include "config/pipeline.h"
#include "loop/problem_set.h"
#include "plugin/parts.h"
#include "store/database.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

// The problems of a run, opened, and the threads that evaluate its kernels. Made before the run's folder, so that a
// broken problem or a wrong configuration fails before --overwrite deletes the old run. The parts outlive it.
struct RunProblems {
  // Receives the number of open problems and the total: from any thread, one call at a time.
  using Opening = std::function<void(size_t open, size_t total)>;

  // `parts`: the evaluator is there; findings that collect already have the reason for another part that is absent.
  // `done`: steps of a resumed run. Findings that collect open held-out problems also for a run that does not use them,
  // and note their faults.
  RunProblems(const PipelineConfig& config, PipelineParts& parts, Findings& findings, uint64_t done = 0,
              const Opening& opening = {});
  // Throws the first fault.
  RunProblems(const PipelineConfig& config, PipelineParts& parts)
      : RunProblems(config, parts, std::make_unique<Findings>()) {}

  WorkerPool pool;
  ProblemSet train;
  std::optional<ProblemSet> heldout;  // set if the run measures on held-out problems
  std::vector<std::string> notes;     // for the user: the findings' notes

  // Problems are drawn by their index in the list, so a resumed run needs the list that it began with. Throws
  // KGRPO_ERROR_INVALID, with the names of problems that are missing or new, if the run recorded another one.
  void RequireSame(RunDatabase& database) const;
  // Returns the names of all problems, one a line. They must be equal on all ranks of a run.
  std::string Names() const;

 private:
  RunProblems(const PipelineConfig& config, PipelineParts& parts, const std::unique_ptr<Findings>& findings)
      : RunProblems(config, parts, *findings) {}
  RunProblems(const PipelineConfig& config, PipelineParts& parts, Findings& findings, uint64_t done,
              const std::function<void()>& opened_one);
  void CheckPrompts(const PipelineConfig& config, const PipelineParts& parts, Findings* findings) const;
};

}  // namespace kgrpo
#endif
