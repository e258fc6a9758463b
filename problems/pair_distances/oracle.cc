// Distance of each pair of points, in float64: what the kernels of this problem are compared with.
#include <cmath>
#include <cstdint>

extern "C" void oracle(const double* x, const double* y, double* out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0;
    for (int64_t c = 0; c < cols; ++c)
      total += (x[r * cols + c] - y[r * cols + c]) * (x[r * cols + c] - y[r * cols + c]);
    out[r] = std::sqrt(total);
  }
}
