// A run: every stage of a pipeline, step after step, with everything that it writes to its folder. Called by the
// commands `run` and `resume`.
//
//   for each step: problems -> trajectories (loop/rollout.h) -> update (loop/stage.h) -> one transaction -> checkpoint
//
// A run may be killed at any instant and resumed from its last checkpoint: the steps after it are done again, with the
// same random numbers and the recorded answers of coder and evaluator, and replace their records. With a
// deterministic policy and trainer (a CPU) the resumed run ends with the same samples and the same weights, bit for
// bit.
#ifndef KGRPO_LOOP_RUN_H
#define KGRPO_LOOP_RUN_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/parts.h"
#include "loop/run_problems.h"
#include "store/fault.h"
#include "store/records.h"
#include "store/run_folder.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

struct RunOptions {
  bool resume = false;                 // the folder holds a run that is to go on
  std::optional<uint64_t> from_step;   // with resume: after this step, not after the last checkpoint
  Console* console = nullptr;          // absent: nothing is shown
  std::vector<std::string> overrides;  // of the command line, for the run's records; `config` holds them already
  std::string notice;                  // for the user, at the beginning; may be empty
  std::function<void(const StepRecord&)> recorded;  // told of each step once it is recorded, on the run's thread
  FaultPoints faults;                               // for tests
};

struct RunOutcome {
  enum class Status {
    kFinished,        // every step is done, final/ is there
    kNothingLearned,  // the same, but no step ever had a sample to learn from: final/ is the model it started from
    kInterrupted,     // the user asked to stop
    kStopped,         // the trainer or a budget asked to stop
  };
  Status status = Status::kFinished;
  uint64_t steps = 0;     // done, of the whole run
  std::string message;    // why it stopped, and what the checkpoint holds; or why nothing was learned
  bool diverged = false;  // kStopped: the trainer met numbers that are not finite

  // As docs/commands.md has it: 0, 130, 1.
  int ExitCode() const { return status == Status::kFinished ? 0 : status == Status::kInterrupted ? 130 : 1; }
};

// Runs, or goes on. Any other failure than a stop is thrown, after a checkpoint of the last whole step where the policy
// is still as it was then. One thread; `parts` was made for this run: trainers that have begun cannot begin again.
RunOutcome Run(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, const RunFolder& folder,
               const RunOptions& options);

}  // namespace kgrpo
#endif
