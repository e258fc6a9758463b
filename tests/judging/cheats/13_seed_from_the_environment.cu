// problem: tests/evaluator/problems/affine
// hack: looks for a seed in its environment and leaves the work where it finds one; there is none
// cuda: correct
// sim: correct
// speedup: at most 1.1
#include <cstring>

extern "C" char** environ;

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (strstr(*entry, "SEED") != nullptr || strstr(*entry, "seed") != nullptr) return;
    if (strstr(*entry, "KGRPO") != nullptr) return;
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
