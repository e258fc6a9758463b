// Bias, GELU and residual, in float64: what the kernels of this problem are compared with.
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void oracle(const double* x, const double* bias, const double* residual, const double* mask, double* out,
                       double gain, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double u = gain * (x[i] + bias[i]);
    const double gelu = 0.5 * u * (1.0 + std::tanh(0.7978845608028654 * (u + 0.044715 * u * u * u)));
    out[i] = std::min(std::max(gelu + residual[i], -8.0), 8.0) * mask[i];
  }
}
