// Plans episodes on held-out problems, without training, and computes their figures. Used by the loop (every
// evaluation.every steps) and by the evaluation of policies.
#ifndef KGRPO_LOOP_HELDOUT_H
#define KGRPO_LOOP_HELDOUT_H

#include "config/pipeline.h"
#include "loop/metrics.h"
#include "loop/rollout.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kgrpo {

// `episodes` trajectories for each of the problems, in their order. Under the shuffle_prompts control an episode gets
// the prompts of one on another problem, drawn anew for each episode number: see DrawOtherProblems. `step` keys the
// random streams: two policies evaluated at the same step use the same streams.
RolloutRequest HeldoutRequest(const PipelineConfig& config, std::span<const std::string> families, uint64_t step,
                              uint64_t episodes, const Suggester& suggester);

// reward, best-of-episode speedup and rates, named "heldout/...".
MetricMap HeldoutMetrics(const std::vector<TrajectoryRecord>& trajectories);

}  // namespace kgrpo
#endif
