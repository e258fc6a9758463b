// The counters requested from Nsight Compute, and their results: metrics profile.*, and a few sentences for users and
// prompts. Used by the profiler and by the evaluator.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "evaluator_cuda/ncu_report.h"

namespace kgrpo::evaluator_cuda {

// ncu's names of the metrics that it is asked for, on a device of that compute capability (90).
std::vector<std::string> NcuMetrics(int compute_capability);

struct ProfileFacts {
  std::vector<std::pair<std::string, double>> metrics;  // profile.seconds, ...: docs/metrics.md lists them
  std::string text;
};

// Durations are of all kernels of the call, everything else is of the one that took longest. What was not counted is
// left out. `kernels` has at least one.
ProfileFacts FactsOf(const std::vector<ProfiledKernel>& kernels);

}  // namespace kgrpo::evaluator_cuda
