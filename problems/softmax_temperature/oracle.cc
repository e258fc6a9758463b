// Softmax of many short rows with a temperature, in float64: what the kernels of this problem are compared with.
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void oracle(const double* x, const double* bias, double* out, int64_t rows, int64_t cols, double heat) {
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = x + r * cols;
    double maximum = -INFINITY;
    double sum = 0;
    for (int64_t c = 0; c < cols; ++c) maximum = std::max(maximum, heat * (row[c] + bias[c]));
    for (int64_t c = 0; c < cols; ++c) sum += std::exp(heat * (row[c] + bias[c]) - maximum);
    for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = std::exp(heat * (row[c] + bias[c]) - maximum) / sum;
  }
}
