// Window applied to frames, in float64: what the kernels of this problem are compared with.
#include <cmath>
#include <cstdint>

extern "C" void oracle(const double* x, double* out, int64_t rows, int64_t cols, double power) {
  for (int64_t c = 0; c < cols; ++c) {
    const double phase = static_cast<double>(c) / cols;
    const double taper = std::exp(-power * std::pow(std::fabs(2 * phase - 1), power));
    const double w = taper * (0.5 - 0.5 * std::cos(2 * 3.141592653589793 * phase));
    for (int64_t r = 0; r < rows; ++r) out[r * cols + c] = x[r * cols + c] * w;
  }
}
