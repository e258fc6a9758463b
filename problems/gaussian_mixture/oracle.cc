// Density of a Gaussian mixture, in float64: what the kernels of this problem are compared with.
#include <cmath>
#include <cstdint>

extern "C" void oracle(const double* x, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double total = 0;
    for (int k = 0; k < 16; ++k) {
      const double offset = x[i] - (k - 8) * 0.25;
      total += std::exp(-offset * offset / (0.1 + 0.05 * k)) / (1.0 + k);
    }
    out[i] = std::log(total);
  }
}
