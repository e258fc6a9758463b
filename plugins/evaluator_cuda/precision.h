// When a speedup has been measured precisely enough. Asked by the timer after each round.
#ifndef KGRPO_EVALUATOR_CUDA_PRECISION_H
#define KGRPO_EVALUATOR_CUDA_PRECISION_H

#include <cstddef>
#include <vector>

namespace kgrpo::evaluator_cuda {

struct Precision {
  double relative_error = 0.02;  // half the width of the ratio's 95% interval, relative
  // Allowed error as a share of |ln(ratio)|, where that is more: a clear speedup or slowdown need not be known to 2%.
  double clear_share = 0.1;

  double AllowedError(double ratio) const;
};

// True when `ratios` (one a round) has at least `fewest` values and their median is known as precisely as wanted. A
// check after every round sometimes stops early by chance; precision_test bounds how often the result is then further
// from the true median than is allowed.
bool IsPrecise(const std::vector<double>& ratios, const Precision& wanted, size_t fewest);

}  // namespace kgrpo::evaluator_cuda

#endif
