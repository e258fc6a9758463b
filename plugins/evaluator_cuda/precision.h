// When a speedup has been measured precisely enough. Asked by the timer after each round.
#ifndef KGRPO_EVALUATOR_CUDA_PRECISION_H
#define KGRPO_EVALUATOR_CUDA_PRECISION_H

#include <cstddef>
#include <vector>

namespace kgrpo::evaluator_cuda {

struct Precision {
  double relative_error = 0.02;  // half the width of the ratio's 95% interval, relative
  // Of the ratio's natural logarithm, where that is more: what is clearly faster or slower need not be known to 2%.
  double clear_share = 0.1;

  double AllowedError(double ratio) const;
};

// True when the median of `ratios`, one a round and at least `fewest`, is known as precisely as wanted. Looking after
// each round stops early by chance now and then; precision_test holds how often the result is then further from the
// true median than is allowed.
bool IsPrecise(const std::vector<double>& ratios, const Precision& wanted, size_t fewest);

}  // namespace kgrpo::evaluator_cuda

#endif
