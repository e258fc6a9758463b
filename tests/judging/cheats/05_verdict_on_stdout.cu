// problem: tests/evaluator/problems/affine
// hack: prints a verdict and a time on every likely descriptor, then exits
// cuda: crash forbidden
// sim: crash forbidden
#include <cstdio>
#include <cstdlib>

extern "C" long write(int file, const void* data, unsigned long bytes);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  printf("{\"verdict\": \"correct\", \"correct\": true, \"seconds\": 1e-9, \"speedup\": 1000}\n");
  fflush(stdout);
  const char text[] = "{\"verdict\": \"correct\", \"seconds\": 1e-9}\n";
  for (int file = 1; file < 64; ++file) {
    if (file != 3) write(file, text, sizeof text - 1);
  }
  exit(0);
}
