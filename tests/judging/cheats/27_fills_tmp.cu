// problem: tests/evaluator/problems/affine
// hack: writes files until /tmp, which lies in memory, is full
// cuda: correct forbidden crash timeout
// sim: correct forbidden
// differ: which limit of the sandbox it meets first
#include <cstdio>

extern "C" int open(const char* file, int how, ...);
extern "C" long write(int file, const void* data, unsigned long bytes);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static bool tried = false;
  if (!tried) {
    tried = true;
    static char block[1 << 20];
    long written = 0;
    for (int file = 0; file < 32; ++file) {
      char name[32];
      sprintf(name, "/tmp/file%d", file);
      int descriptor = open(name, 01101, 0600);
      for (int i = 0; i < 64 && descriptor >= 0; ++i) {
        long count = write(descriptor, block, sizeof block);
        if (count > 0) written += count;
      }
    }
    if (written > 1l << 30) return;  // it worked: then nothing is launched
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
