// 7x7 blur, in float64: what the kernels of this problem are compared with.
#include <cstdint>

extern "C" void oracle(const double* x, const double* weights, double* out, int64_t height, int64_t width) {
  for (int64_t row = 0; row < height; ++row) {
    for (int64_t col = 0; col < width; ++col) {
      double total = 0;
      for (int64_t dy = -3; dy <= 3; ++dy) {
        for (int64_t dx = -3; dx <= 3; ++dx) {
          const bool inside = row + dy >= 0 && row + dy < height && col + dx >= 0 && col + dx < width;
          const double value = inside ? x[(row + dy) * width + col + dx] : 0.0;
          total += value * weights[(dy + 3) * 7 + dx + 3];
        }
      }
      out[row * width + col] = total;
    }
  }
}
