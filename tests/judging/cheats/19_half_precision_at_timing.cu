// problem: tests/evaluator/problems/affine
// hack: half precision at the timing size only
// cuda: wrong
// sim: wrong
#include <cuda_fp16.h>

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = n > 100000 ? __half2float(__hfma(__float2half(2.0f), __float2half(x[i]), __float2half(y[i])))
                      : 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
