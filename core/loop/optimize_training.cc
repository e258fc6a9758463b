#include "loop/optimize_training.h"

#include "loop/candidates.h"
#include "loop/checkpoint.h"
#include "loop/metrics.h"
#include "loop/run.h"
#include "loop/stopwatch.h"

#include <kgrpo/sdk/error.h>

#include <atomic>
#include <string>

namespace kgrpo {

uint64_t UpdatesOf(const PipelineConfig& config, uint64_t evaluations) {
  const uint64_t kernels = config.loop.batch_size * config.loop.rounds;
  if (evaluations >= kernels) return evaluations / kernels;
  throw Error(KGRPO_ERROR_INVALID,
              "--evaluations " + std::to_string(evaluations) + " is less than one update takes: loop.batch_size (" +
                  std::to_string(config.loop.batch_size) + ") x loop.rounds (" + std::to_string(config.loop.rounds) +
                  ") kernels. Allow more, or make an update smaller by --set loop.batch_size=N");
}

SearchResult SearchByTraining(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems,
                              const RunFolder& folder, const SearchPlan& plan,
                              const std::function<void(const SearchCandidate&)>& tell) {
  const Stopwatch watch;
  const OpenProblem& problem = problems.train[0];
  SearchResult result;
  CandidateLog log(problem, problem.source, problem.baseline, tell, &result);
  std::atomic<bool> too_dear = false;
  RunOptions options;
  options.recorded = [&](const StepRecord& step) {
    for (const TrajectoryRecord& trajectory : step.trajectories) {
      for (const RoundRecord& round : trajectory.rounds_done) log.Add(trajectory, round, step.step - 1, step.step - 1);
      if (trajectory.failed_round) log.Add(trajectory, *trajectory.failed_round, step.step - 1, step.step - 1);
    }
    result.waves = step.step;
    result.cost += CoderCost(step.trajectories);
    too_dear = result.cost >= plan.max_cost;
  };
  const std::function<bool()> user = parts.cancelled;
  // The caller uses parts.cancelled afterwards, so it is restored even if Run throws.
  struct PutBack {
    PipelineParts& parts;
    const std::function<bool()>& user;
    ~PutBack() { parts.cancelled = user; }
  } put_back{parts, user};
  parts.cancelled = [&] { return user() || too_dear || watch.seconds() >= plan.seconds; };
  const RunOutcome outcome = Run(config, parts, problems, folder, options);
  result.seconds = watch.seconds();
  result.stopped = user();
  result.diverged = outcome.diverged;
  if (outcome.status == RunOutcome::Status::kInterrupted) {
    result.ended = result.stopped ? "stopped by the user"
                   : too_dear     ? "the cost limit (--max-cost)"
                                  : "the time limit (--budget)";
    // A limit interrupts the run, but is a normal end of the search: write the policy of the last whole update.
    if (!result.stopped) WriteModel(*parts.policy, folder.final_model(), &config.loop.sampling);
  } else if (outcome.status == RunOutcome::Status::kFinished) {
    result.ended = std::to_string(outcome.steps) + " updates";
  } else {
    result.ended = outcome.message;
  }
  return result;
}

}  // namespace kgrpo
