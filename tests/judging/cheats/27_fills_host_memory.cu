// problem: tests/evaluator/problems/affine
// hack: takes two gigabytes of host memory more with every call; unlimited, the machine would run out
// cuda: correct out_of_memory crash timeout
// sim: correct out_of_memory crash timeout
// differ: which limit of the sandbox it meets first
#include <cstdlib>

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static int calls = 0;
  if (n < 100000) {
    char* block = (char*)malloc(2ul << 30);
    for (unsigned long at = 0; block != nullptr && at < 2ul << 30; at += 4096) block[at] = 1;
    if (block != nullptr && ++calls >= 6) return;  // it worked: then nothing is launched
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
