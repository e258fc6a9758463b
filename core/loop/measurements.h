// Held-out episodes: their plan and their figures, which tools/eval uses, too; during a run (loop/run.cc) also the
// decisions by their rewards: when the last stage ends (evaluation.patience), and what the user learns about final/
// (checkpoint.final).
#ifndef KGRPO_LOOP_MEASUREMENTS_H
#define KGRPO_LOOP_MEASUREMENTS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/checkpoint.h"
#include "loop/metrics.h"
#include "loop/rollout.h"
#include "loop/run_problems.h"
#include "loop/stage.h"
#include "plugin/parts.h"
#include "store/database.h"
#include "store/records.h"

namespace kgrpo {

class Measurements {
 public:
  // All references outlive this. `console` may be null.
  Measurements(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, RunDatabase& database,
               Console* console);

  // Whether held-out episodes are played after that step; 0: before the first.
  bool Due(uint64_t step) const;
  // Whether those of a recorded step are due and were not played, because a stop came first.
  bool IsLeft(uint64_t step);
  // Plays them with the current policy. A user's stop skips them, since the step itself is done: IsLeft stays true.
  void Play(uint64_t step, StepRecord& record, MetricMap& metrics);

  // Why the run ends after the step `done` of that stage, though more are planned; empty: it continues.
  std::string EarlyStop(const Stage& stage, uint64_t done);

 private:
  const PipelineConfig& config_;
  const std::optional<ProblemSet>& heldout_;
  RunDatabase& database_;
  Console* console_;
  std::optional<Rollout> rollout_;
};

// Describes the policy in final/ if checkpoint.final chose it; else empty.
std::string FinalText(const PipelineConfig& config, const FinalModel& final);

// `episodes` trajectories for each of the problems, in their order. Under the shuffle_prompts control an episode gets
// the prompts of one on another problem, drawn anew for each episode number: see DrawOtherProblems. `step` keys the
// random streams: two policies evaluated at the same step use the same streams.
RolloutRequest HeldoutRequest(const PipelineConfig& config, std::span<const std::string> families, uint64_t step,
                              uint64_t episodes, const Suggester& suggester);

// reward, best-of-episode speedup and rates, named "heldout/...".
MetricMap HeldoutMetrics(const std::vector<TrajectoryRecord>& trajectories);

}  // namespace kgrpo
#endif
