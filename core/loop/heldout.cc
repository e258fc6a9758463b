#include "loop/heldout.h"

#include "loop/draws.h"
#include "loop/statistics.h"

#include <numeric>

namespace kgrpo {

RolloutRequest HeldoutRequest(const PipelineConfig& config, std::span<const std::string> families, uint64_t step,
                              uint64_t episodes, const Suggester& suggester) {
  RolloutRequest request;
  request.purpose = Purpose::kHeldout;
  request.step = step;
  request.suggester = suggester;
  std::vector<uint32_t> all(families.size());
  std::iota(all.begin(), all.end(), 0U);
  std::vector<std::vector<size_t>> others;  // by episode
  for (uint64_t episode = 0; episode < episodes && config.controls.shuffle_prompts; ++episode) {
    KeyedStream random(config.seed, "shuffle prompts", {static_cast<uint64_t>(Purpose::kHeldout), step, episode});
    others.push_back(DrawOtherProblems(random, all, families));
  }
  for (size_t problem = 0; problem < families.size(); ++problem) {
    for (uint64_t episode = 0; episode < episodes; ++episode) {
      const size_t other = others.empty() ? problem : others[episode][problem];
      request.assignments.push_back(
          {static_cast<uint32_t>(problem), static_cast<uint32_t>(other * episodes + episode)});
    }
  }
  return request;
}

MetricMap HeldoutMetrics(const std::vector<TrajectoryRecord>& trajectories) {
  const MetricMap all = RolloutMetrics(trajectories);
  MetricMap metrics;
  for (const char* name :
       {"reward", "kernel/correct_rate", "kernel/failed_rate", "kernel/fast_1", "coder/not_applicable_rate",
        "coder/unclear_rate", "coder/error_rate", "evaluator/error_rate", "reward/error_rate", "coder/cost",
        "policy/favourite_share", "policy/no_kernel_rate"}) {
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
