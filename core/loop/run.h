// A run: executes every stage of a pipeline, step after step, and writes the run's folder. Called by the commands `run`
// and `resume`.
//
//   for each step: problems -> trajectories (loop/rollout.h) -> update (loop/stage.h) -> one transaction -> checkpoint
//
// A run may be killed at any instant and resumed from its last checkpoint. It then repeats the steps after the
// checkpoint, with the same random numbers and the recorded answers of coder and evaluator, and replaces their records.
// With a deterministic policy and trainer (a CPU) the resumed run ends with the same samples and the same weights, bit
// for bit.
#ifndef KGRPO_LOOP_RUN_H
#define KGRPO_LOOP_RUN_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/run_problems.h"
#include "plugin/parts.h"
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
  bool resume = false;                              // continue the run in the folder
  std::optional<uint64_t> from_step;                // with resume: after this step, not after the last checkpoint
  Console* console = nullptr;                       // null: nothing is shown
  std::vector<std::string> overrides;               // --set, for the run's records; `config` has them already
  std::string notice;                               // for the user, at the beginning; may be empty
  std::function<void(const StepRecord&)> recorded;  // called with each recorded step, on the run's thread
  FaultPoints faults;                               // for tests
};

struct RunOutcome {
  enum class Status {
    kFinished,        // every step is done, final/ is there
    kNothingLearned,  // every step is done, but a stage had nothing to learn from: loop/round_faults.h
    kInterrupted,     // the user asked to stop
    kStopped,         // the trainer or a budget asked to stop
  };
  Status status = Status::kFinished;
  uint64_t steps = 0;     // done, of the whole run
  std::string message;    // why it stopped, and what the checkpoint holds; or why nothing was learned
  bool diverged = false;  // kStopped: the trainer met non-finite numbers

  // 0, 130 or 1, as docs/commands.md lists them.
  int ExitCode() const { return status == Status::kFinished ? 0 : status == Status::kInterrupted ? 130 : 1; }
};

// Runs the pipeline, or continues it. Throws every failure but a stop. First writes a checkpoint of the last whole
// step, if the policy has not changed since. One thread; `parts` was made for this run: trainers that have begun cannot
// begin again.
RunOutcome Run(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, const RunFolder& folder,
               const RunOptions& options);

}  // namespace kgrpo
#endif
