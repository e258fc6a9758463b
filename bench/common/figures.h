// Figures of measurements. Used by those that time many kernels one after the other.
#ifndef KGRPO_TOOLS_COMMON_FIGURES_H
#define KGRPO_TOOLS_COMMON_FIGURES_H

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace kgrpo::bench {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The quantile `q`, 0 to 1: one of the values, of which there is at least one.
inline double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

// Of at least one value; of an even number the mean of the two in the middle.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace kgrpo::bench

#endif
