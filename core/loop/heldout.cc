#include "loop/heldout.h"

#include "loop/statistics.h"
#include "random/keyed.h"

namespace kgrpo {

RolloutRequest HeldoutRequest(const PipelineConfig& config, size_t problem_count, uint64_t step, uint64_t episodes,
                              const Suggester& suggester) {
  RolloutRequest request;
  request.purpose = Purpose::kHeldout;
  request.step = step;
  request.suggester = suggester;
  size_t offset = 0;
  if (config.controls.shuffle_prompts && problem_count > 1) {
    KeyedStream random(config.seed, "shuffle prompts", {static_cast<uint64_t>(Purpose::kHeldout), step});
    offset = 1 + random.Below(problem_count - 1);
  }
  for (size_t problem = 0; problem < problem_count; ++problem) {
    const size_t prompted_as = (problem + offset) % problem_count;
    for (uint64_t episode = 0; episode < episodes; ++episode) {
      request.assignments.push_back({static_cast<uint32_t>(problem), static_cast<uint32_t>(prompted_as)});
    }
  }
  return request;
}

MetricMap HeldoutMetrics(const std::vector<TrajectoryRecord>& trajectories) {
  const MetricMap all = RolloutMetrics(trajectories);
  MetricMap metrics;
  for (const char* name : {"reward", "kernel/correct_rate", "kernel/failed_rate", "kernel/fast_1",
                           "coder/not_applicable_rate", "coder/unclear_rate", "policy/favourite_share"}) {
    const auto found = all.find(name);
    if (found != all.end()) metrics["heldout/" + found->first] = found->second;
  }
  std::vector<double> speedups;
  for (const TrajectoryRecord& trajectory : trajectories) {
    if (!trajectory.rounds_done.empty()) speedups.push_back(BestSpeedup(trajectory));
  }
  if (!speedups.empty()) metrics["heldout/best_speedup_geomean"] = GeometricMean(speedups);
  return metrics;
}

}  // namespace kgrpo
