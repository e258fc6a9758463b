// Compares policies by the episodes that both played on the same problems with the same
// random streams. Used by `kgrpo-host eval` with several policies.
#ifndef KGRPO_LOOP_COMPARE_POLICIES_H
#define KGRPO_LOOP_COMPARE_POLICIES_H

#include "base/console.h"
#include "loop/evaluate_policy.h"

#include <cstddef>
#include <vector>

namespace kgrpo {

struct PolicyDifference {
  size_t other = 0;     // index of the report that is compared with the first
  size_t episodes = 0;  // that both played
  Interval reward;      // how much higher its mean reward is
  Interval speedup;     // its best speedups over the first's, geometric mean
};

// Compares every report but the first with the first, over pairs of episodes. The bootstrap resamples pairs within each
// problem, so the intervals cover other episodes on these problems, not other problems. Together they hold at 95%
// (Bonferroni). A report without a pair is left out.
std::vector<PolicyDifference> ComparePolicies(const std::vector<PolicyReport>& reports);

// {"policies": [PolicyReport, ...], "differences": [{"first", "other", "reward", "best_speedup_ratio"}, ...]}
nlohmann::ordered_json PoliciesToJson(const std::vector<PolicyReport>& reports);

// One table of all policies, and a verdict in words for each but the first.
void ShowPolicies(Console& console, const std::vector<PolicyReport>& reports);

}  // namespace kgrpo
#endif
