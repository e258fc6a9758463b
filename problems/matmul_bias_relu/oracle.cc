// Linear layer with bias and ReLU, in float64: what the kernels of this problem are compared with.
#include <algorithm>
#include <cstdint>

extern "C" void oracle(const double* a, const double* b, const double* bias, double* out, int64_t m, int64_t n,
                       int64_t k) {
  // Row by row of b, so that neighbouring outputs are summed side by side; each of them from i = 0 up.
  constexpr int64_t kRows = 8;  // of out, that share a pass over b
  for (int64_t first = 0; first < m; first += kRows) {
    const int64_t last = std::min(first + kRows, m);
    std::fill(out + first * n, out + last * n, 0.0);
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t r = first; r < last; ++r) {
        for (int64_t c = 0; c < n; ++c) out[r * n + c] += a[r * k + i] * b[i * n + c];
      }
    }
    for (int64_t r = first; r < last; ++r) {
      for (int64_t c = 0; c < n; ++c) out[r * n + c] = std::max(out[r * n + c] + bias[c], 0.0);
    }
  }
}
