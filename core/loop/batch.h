// The trajectories of a step: draws its problems, plays them, and replaces groups that teach nothing. Used by
// loop/stage.cc.
//
// A group is the loop.trajectories_per_problem trajectories that share a drawn problem. If all rewards of a problem are
// equal, round by round, a trainer that compares rounds with their like (advantage_group: problem_round) learns nothing
// from them. Its groups are set aside (Purpose::kRedrawn), and as many on other problems are played, up to loop.redraws
// times a step (DAPO's dynamic sampling, arXiv 2503.14476, section 3.2). What is drawn depends on the seed and on the
// recorded steps before, so that a resumed run draws what an unbroken one does.
#ifndef KGRPO_LOOP_BATCH_H
#define KGRPO_LOOP_BATCH_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/metrics.h"
#include "loop/problem_set.h"
#include "loop/problem_weights.h"
#include "loop/rollout.h"
#include "store/database.h"
#include "store/records.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kgrpo {

// Groups with equal rewards in a step: those drawn again, and those left in the batch.
inline constexpr const char* kRedrawnMetric = "train/redrawn_groups";
inline constexpr const char* kEqualMetric = "train/equal_groups";

// True if all rewards and idle rewards of the trajectories are equal, round by round, none was dropped, and the coder
// failed in none: more requests do not repair a service.
bool HasEqualRewards(std::span<const TrajectoryRecord> group);

// All trajectories of a step's rollouts: its batch, then those that were set aside.
std::vector<TrajectoryRecord> Played(const StepRecord& step);

class BatchCollector {
 public:
  // All references outlive this. `console` may be null.
  BatchCollector(const PipelineConfig& config, Rollout& rollout, const ProblemSet& problems, RunDatabase& database,
                 Console* console);

  // Plays the trajectories of that step, the run's `draw`-th with rollouts (from 0). `request`: of them, without
  // assignments. Sets the record's trajectories, those set aside, and the metrics of the rollout.
  void Collect(uint64_t draw, RolloutRequest request, StepRecord* record, MetricMap* metrics);

 private:
  std::vector<Assignment> Draw(uint64_t step, uint64_t draw);
  const PipelineConfig& config_;
  Rollout& rollout_;
  const ProblemSet& problems_;
  RunDatabase& database_;
  Console* console_;
  ProblemWeights weights_;
  uint64_t counted_ = 0;  // steps in the weights
};

}  // namespace kgrpo
#endif
