#include <math.h>

/* y[i] = 1 + x[i] + x[i]^2 + ... + x[i]^7 */
void kernel(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) {
    y[i] = 0;
    for (int k = 0; k < 8; ++k) y[i] += powf(x[i], (float)k);
  }
}
