#include "cli/suite_counts.h"

#include <algorithm>
#include <cmath>

namespace kgrpo::cli {

Share ShareOf(size_t count, size_t n) {
  if (n == 0) return {0, 0, 1};
  constexpr double kZ = 1.959963984540054;  // of 95%
  const auto trials = static_cast<double>(n);
  const double share = static_cast<double>(count) / trials, z2 = kZ * kZ / trials;
  const double centre = share + z2 / 2;
  const double half = kZ * std::sqrt(share * (1 - share) / trials + z2 / (4 * trials));
  return {share, std::max(0.0, (centre - half) / (1 + z2)), std::min(1.0, (centre + half) / (1 + z2))};
}

SuiteCounts CountsOf(const std::string& group, const std::vector<SuiteResult>& results) {
  SuiteCounts counts;
  counts.group = group;
  std::array<size_t, kFastP.size()> fast = {};
  double logarithms = 0;
  for (const SuiteResult& result : results) {
    ++counts.problems;
    counts.kernels += result.verdict != "no kernel";
    counts.compiled += result.compiled;
    counts.correct += result.correct;
    if (!result.correct) continue;
    if (result.speedup) {
      ++counts.timed;
      logarithms += std::log(*result.speedup);
    }
    for (size_t i = 0; i < kFastP.size(); ++i)
      fast[i] += kFastP[i] == 0 || (result.speedup && *result.speedup > kFastP[i]);
  }
  for (size_t i = 0; i < kFastP.size(); ++i) counts.fast[i] = ShareOf(fast[i], counts.problems);
  if (counts.timed > 0) counts.geometric_mean = std::exp(logarithms / static_cast<double>(counts.timed));
  return counts;
}

}  // namespace kgrpo::cli
