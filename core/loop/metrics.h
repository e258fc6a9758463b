// The figures of a rollout: shares of kernels that compiled, were correct, were faster; the policy's suggestions;
// times. docs/loop.md lists the names. Used by the loop (a step's metrics) and by the evaluation of policies.
#ifndef KGRPO_LOOP_METRICS_H
#define KGRPO_LOOP_METRICS_H

#include "store/records.h"

#include <map>
#include <string>
#include <vector>

namespace kgrpo {

using MetricMap = std::map<std::string, double>;

// Returns the policy's suggestion in lower case with single spaces. Tables and metrics count suggestions by this text,
// whether or not the coder applied them.
std::string SuggestionText(const std::string& suggestion);

// Returns that text for a table: "(empty)" if there is none, cut to `width` columns.
std::string ShownSuggestion(const std::string& text, size_t width);

// The coder's cost in the trajectories, in US dollars, including rounds of dropped trajectories.
double CoderCost(const std::vector<TrajectoryRecord>& trajectories);

// Rewards and their parts, kernel/..., coder/..., policy/..., time/{implement,evaluate}. Empty trajectories
// give no rewards. Rates are over all rounds, whether the coder wrote a kernel or not.
MetricMap RolloutMetrics(const std::vector<TrajectoryRecord>& trajectories);

// Over all rounds; 0 where there is none.
double MeanReward(const std::vector<TrajectoryRecord>& trajectories);

// The best correct kernel's speedup in the trajectory; 1 when none was faster than the reference.
double BestSpeedup(const TrajectoryRecord& trajectory);

}  // namespace kgrpo
#endif
