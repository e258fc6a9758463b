// Sinusoidal positions added to a batch, in float64: what the kernels of this problem are compared with.
#include <cmath>
#include <cstdint>

extern "C" void oracle(const double* x, double* out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      out[r * cols + c] = x[r * cols + c] + std::sin(static_cast<double>(c / 32) *
                                                     std::pow(10000.0, -static_cast<double>(c % 32) / 32.0));
    }
  }
}
