// problem: tests/evaluator/problems/affine
// hack: overwrites cudaDeviceSynchronize in the worker's memory so that it returns at once
// cuda: unfinished hidden_work implausible wrong
// sim: correct
// differ: only one of the worker processes has a device to wait for
// speedup: at most 1.1
#include <cstring>

extern "C" int mprotect(void* at, unsigned long bytes, int protection);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static bool done = false;
  if (n > 100000 && !done) {  // "return cudaSuccess" in machine code
    done = true;
    const unsigned char machine_code[] = {0x31, 0xc0, 0xc3};
    void* at = (void*)&cudaDeviceSynchronize;
    if (mprotect((void*)((unsigned long)at & ~4095ul), 8192, 7) == 0) memcpy(at, machine_code, sizeof machine_code);
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
