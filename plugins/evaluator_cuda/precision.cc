#include "evaluator_cuda/precision.h"

#include <algorithm>
#include <cmath>

#include "evaluator_cuda/median.h"

namespace kgrpo::evaluator_cuda {

double Precision::AllowedError(double ratio) const {
  return std::max(relative_error, clear_share * std::abs(std::log(ratio)));
}

bool IsPrecise(const std::vector<double>& ratios, const Precision& wanted, size_t fewest) {
  if (ratios.size() < fewest) return false;
  const Median ratio = MedianOf(ratios);
  return ratio.RelativeError() <= wanted.AllowedError(ratio.value);
}

FlatRounds WhoseRoundsAreFlat(size_t candidate, size_t reference, size_t either, size_t rounds) {
  if (2 * either < rounds) return FlatRounds::kFew;
  return 2 * reference < candidate ? FlatRounds::kOfCandidate : FlatRounds::kOfBoth;
}

}  // namespace kgrpo::evaluator_cuda
