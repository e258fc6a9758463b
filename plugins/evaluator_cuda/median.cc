#include "evaluator_cuda/median.h"

#include <algorithm>
#include <cmath>

namespace kgrpo::evaluator_cuda {

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

}  // namespace kgrpo::evaluator_cuda
