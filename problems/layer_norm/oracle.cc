// Layer normalisation, in float64: what the kernels of this problem are compared with.
#include <cmath>
#include <cstdint>

extern "C" void oracle(const double* x, const double* gamma, const double* beta, double* out, int64_t rows,
                       int64_t cols, double epsilon) {
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = x + r * cols;
    double mean = 0;
    double variance = 0;
    for (int64_t c = 0; c < cols; ++c) mean += row[c] / cols;
    for (int64_t c = 0; c < cols; ++c) variance += (row[c] - mean) * (row[c] - mean) / cols;
    for (int64_t c = 0; c < cols; ++c)
      out[r * cols + c] = (row[c] - mean) / std::sqrt(variance + epsilon) * gamma[c] + beta[c];
  }
}
