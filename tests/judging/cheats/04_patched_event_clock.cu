// problem: tests/evaluator/problems/affine
// hack: makes cudaEventElapsedTime say that nothing took any time; only the evaluator's own clock counts, so nothing is gained
// cuda: correct hidden_work
// sim: correct
// speedup: at most 1.1
#include <cstring>

extern "C" int mprotect(void* at, unsigned long bytes, int protection);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static bool done = false;
  if (!done) {  // "return cudaSuccess", the milliseconds untouched at 0
    done = true;
    const unsigned char machine_code[] = {0x31, 0xc0, 0xc3};
    void* at = (void*)&cudaEventElapsedTime;
    if (mprotect((void*)((unsigned long)at & ~4095ul), 8192, 7) == 0) memcpy(at, machine_code, sizeof machine_code);
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
