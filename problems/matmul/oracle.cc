// Matrix product, in float64: what the kernels of this problem are compared with.
#include <cstdint>

extern "C" void oracle(const double* a, const double* b, double* out, int64_t m, int64_t n, int64_t k) {
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      double total = 0;
      for (int64_t i = 0; i < k; ++i) total += a[r * k + i] * b[i * n + c];
      out[r * n + c] = total;
    }
  }
}
