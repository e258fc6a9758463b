// Matrix transpose, in float64: what the kernels of this problem are compared with.
#include <cstdint>

extern "C" void oracle(const double* x, double* out, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) out[c * rows + r] = x[r * cols + c];
  }
}
