#include <cstddef>

extern "C" void draw_a(double* a, const Sizes& size, Draw& draw) {
  for (int64_t i = 0; i < size.n; ++i)
    for (int64_t j = 0; j <= i; ++j) a[i * size.n + j] = a[j * size.n + i] = draw.normal();
}

void draw_b(int64_t* b, const Sizes& size, Draw& draw) {
  for (int64_t i = 0; i < size.n; ++i)
    for (int64_t j = 0; j <= i; ++j) b[i * size.n + j] = b[j * size.n + i] = draw.below(2) * 2 - 1;
}
