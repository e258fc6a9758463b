// Summarises a suite's results: fast_p with intervals, geometric mean of the speedups. Used by suite.cc.
#ifndef KGRPO_EVAL_SUITE_COUNTS_H
#define KGRPO_EVAL_SUITE_COUNTS_H

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo::cli {

// One problem of the suite and the result of its kernel.
struct SuiteResult {
  std::string problem, group;  // group: the row of the table, "KernelBench level 1" or a family
  std::string verdict;         // "no kernel" where there is none
  std::string diagnosis;
  bool compiled = false, correct = false;
  std::optional<double> speedup;          // over pytorch_seconds if set, else over the reference
  double seconds = 0;                     // the kernel's time; 0 unless correct
  std::optional<double> pytorch_seconds;  // the baseline of the speedup, where it is not the reference
  bool pytorch_listed = false;            // from a file of times, not measured beside the kernel
  bool modelled = false;
};

// A share of n with its 95% interval by Wilson's score, which holds for small n and for shares of 0 and 1.
struct Share {
  double value = 0, low = 0, high = 0;
};
Share ShareOf(size_t count, size_t n);

// The p of fast_p: a kernel counts where it is correct and its speedup is more than p.
constexpr std::array<double, 6> kFastP = {0, 0.5, 0.8, 1, 1.5, 2};

struct SuiteCounts {
  std::string group;
  size_t problems = 0, kernels = 0, compiled = 0, correct = 0, timed = 0;
  std::array<Share, kFastP.size()> fast;
  double geometric_mean = 0;  // geometric mean of the speedups of correct kernels; 0 if none has one
  // The 95% interval of the mean: Student's t over the logarithms. A single speedup has none: 0 and 0.
  double geometric_mean_low = 0, geometric_mean_high = 0;
};

// KernelBench flags larger speedups as excessive: they are rare for honest kernels and common for cheating ones.
constexpr double kExcessiveSpeedup = 10;
bool IsExcessive(const SuiteResult& result);

// fast_0 also counts correct kernels without a baseline; fast_p with p > 0 cannot.
SuiteCounts CountsOf(const std::string& group, const std::vector<SuiteResult>& results);

}  // namespace kgrpo::cli
#endif
