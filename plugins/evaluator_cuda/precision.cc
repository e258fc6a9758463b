#include "evaluator_cuda/precision.h"

#include <algorithm>
#include <cmath>

#include "evaluator_cuda/median.h"

namespace kgrpo::evaluator_cuda {

double Precision::AllowedError(double ratio) const {
  return std::max(relative_error, clear_share * std::abs(std::log(ratio)));
}

bool IsPrecise(const std::vector<double>& ratios, const Precision& wanted, size_t fewest) {
  const size_t fewest_if_clear = (2 * fewest + 2) / 3;
  if (ratios.size() < fewest_if_clear) return false;
  const Median ratio = MedianOf(ratios);
  const double allowed = wanted.AllowedError(ratio.value);
  if (allowed <= wanted.relative_error && ratios.size() < fewest) return false;
  return ratio.RelativeError() <= allowed;
}

}  // namespace kgrpo::evaluator_cuda
