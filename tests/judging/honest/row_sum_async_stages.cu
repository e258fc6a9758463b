// problem: tests/evaluator/problems/row_sum
// style: four parts of a row through two stages of cp.async, waiting for all but the newest
// cuda: correct
// sim: correct
#include <cuda_pipeline.h>

__global__ void Sum(const float* x, float* out) {
  __shared__ float stage[2][16];
  const float* row = x + blockIdx.x * 64;
  const int t = threadIdx.x;
  stage[t / 16][t % 16] = 0;
  __syncthreads();
  if (t < 16) __pipeline_memcpy_async(&stage[0][t], row + t, 4);
  __pipeline_commit();
  float sum = 0;
#pragma unroll 1
  for (int part = 0; part < 4; ++part) {
    if (part < 3 && t < 16) __pipeline_memcpy_async(&stage[(part + 1) & 1][t], row + 16 * part + 16 + t, 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    if (t == 0) {
#pragma unroll 1
      for (int k = 0; k < 16; ++k) sum += stage[part & 1][k];
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 32>>>(x, out); }
