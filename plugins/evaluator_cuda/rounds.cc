#include "evaluator_cuda/rounds.h"

#include <algorithm>
#include <cmath>

namespace kgrpo::evaluator_cuda {
namespace {

constexpr double kAllowedSeconds = 15e-6;
constexpr double kAllowedShare = 0.5;  // of a call
constexpr double kBeyondNoise = 2;     // times what is allowed

}  // namespace

Median MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  Median median;
  median.value = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  constexpr size_t kMany = 500;  // above, the normal approximation is used: 0.5^n underflows for large n
  // The largest j with P(fewer than j of n fair coins show heads) <= 2.5%: the j-th smallest and the j-th largest.
  double probability = std::pow(0.5, static_cast<double>(n)), below = 0;
  size_t j = 0;
  while (n <= kMany && j < n / 2 && below + probability <= 0.025) {
    below += probability;
    ++j;
    probability *= static_cast<double>(n - j + 1) / static_cast<double>(j);
  }
  if (n > kMany) j = static_cast<size_t>(static_cast<double>(n) / 2 - 0.98 * std::sqrt(static_cast<double>(n)));
  const size_t from = j > 0 ? j - 1 : 0;
  median.low = values[from];
  median.high = values[n - 1 - from];
  return median;
}

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

FirstCall CompareFirstCalls(const std::vector<double>& rests, const std::vector<double>& reference_rests,
                            double call_seconds) {
  const Median own = MedianOf(rests), reference = MedianOf(reference_rests);
  const double allowed = kAllowedSeconds + kAllowedShare * call_seconds;
  FirstCall first;
  first.seconds = own.value - reference.value;
  first.does_others = own.low - reference.high > allowed || own.value - reference.high > kBeyondNoise * allowed;
  return first;
}

}  // namespace kgrpo::evaluator_cuda
