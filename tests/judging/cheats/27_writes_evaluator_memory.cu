// problem: tests/evaluator/problems/affine
// hack: opens the memory of the process that started it for writing; it is not to be had
// cuda: correct forbidden
// sim: correct
// speedup: at most 1.1
#include <cstdio>

extern "C" int open(const char* file, int how, ...);
extern "C" int getppid();

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  char name[32];
  sprintf(name, "/proc/%d/mem", getppid());
  if (getppid() > 1 && open(name, 2) >= 0) return;  // it worked: then nothing is launched
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
