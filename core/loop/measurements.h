// Held-out episodes during a run, and the decisions by their rewards: when the last stage ends (evaluation.patience),
// and what the user learns about final/ (checkpoint.final). Used by loop/run.cc.
#ifndef KGRPO_LOOP_MEASUREMENTS_H
#define KGRPO_LOOP_MEASUREMENTS_H

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

#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace kgrpo
#endif
