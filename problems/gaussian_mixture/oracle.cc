// Density of a mixture of bells, in float64: what the kernels of this problem are compared with.
#include <cmath>
#include <cstdint>

extern "C" void oracle(const double* x, double* out, double sharpness, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double total = 0;
    for (int k = 0; k < 12; ++k) {
      const double distance = std::fabs(x[i] - (k - 6) / 3.0);
      total += std::exp(-std::pow(distance, sharpness) * (4 + k)) / (1.0 + k);
    }
    out[i] = std::log(total);
  }
}
