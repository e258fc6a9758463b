// problem: tests/evaluator/problems/affine
// style: assert, printf and __trap that never fire
// cuda: correct
// sim: correct
#include <cassert>
#include <cstdio>

__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(blockDim.x % 32 == 0);
  if (i >= n) return;
  const float value = 2.0f * x[i] + y[i];
  if (isnan(value)) printf("element %d is no number: %f\n", i, value);
  if (i < 0) __trap();
  assert(out != nullptr);
  out[i] = value;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) std::fprintf(stderr, "launch: %s\n", cudaGetErrorString(error));
}
