// Histogram of levels, in float64: what the kernels of this problem are compared with.
#include <cstdint>

extern "C" void oracle(const int64_t* values, int64_t* counts, int64_t n) {
  for (int64_t b = 0; b < 1024; ++b) counts[b] = 0;
  for (int64_t i = 0; i < n; ++i) ++counts[values[i]];
}
