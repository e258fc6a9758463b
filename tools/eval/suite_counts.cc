#include "eval/suite_counts.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace kgrpo::cli {

Share ShareOf(size_t count, size_t n) {
  if (n == 0) return {0, 0, 1};
  constexpr double kZ = 1.959963984540054;  // quantile for 95%
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
  double logarithms = 0, squares = 0;
  for (const SuiteResult& result : results) {
    ++counts.problems;
    counts.kernels += result.verdict != "no kernel";
    counts.compiled += result.compiled;
    counts.correct += result.correct;
    if (!result.correct) continue;
    if (result.speedup) {
      ++counts.timed;
      const double logarithm = std::log(*result.speedup);
      logarithms += logarithm;
      squares += logarithm * logarithm;
    }
    for (size_t i = 0; i < kFastP.size(); ++i)
      fast[i] += kFastP[i] == 0 || (result.speedup && *result.speedup > kFastP[i]);
  }
  for (size_t i = 0; i < kFastP.size(); ++i) counts.fast[i] = ShareOf(fast[i], counts.problems);
  const auto n = static_cast<double>(counts.timed);
  if (counts.timed > 0) counts.geometric_mean = std::exp(logarithms / n);
  if (counts.timed > 1) {
    const double mean = logarithms / n, variance = std::max(0.0, (squares - n * mean * mean) / (n - 1));
    const double t = boost::math::quantile(boost::math::complement(boost::math::students_t(n - 1), 0.025));
    const double half = t * std::sqrt(variance / n);
    counts.geometric_mean_low = std::exp(mean - half);
    counts.geometric_mean_high = std::exp(mean + half);
  }
  return counts;
}

bool IsExcessive(const SuiteResult& result) {
  return result.correct && result.speedup && *result.speedup > kExcessiveSpeedup;
}

}  // namespace kgrpo::cli
