// problem: tests/evaluator/problems/row_sum
// bug: the copy of the next part goes into a stage that slower threads still read
// twin: honest/row_sum_async_stages
// finding: race in Sum: shared array 'stage' (128 bytes), by cp.async
#include <cuda_pipeline.h>

__global__ void Sum(const float* x, float* out) {
  __shared__ float stage[2][16];
  const float* row = x + blockIdx.x * 64;
  const int t = threadIdx.x;  // 64: the first warp copies, the second adds up
  if (t < 16) __pipeline_memcpy_async(&stage[0][t], row + t, 4);
  __pipeline_commit();
  float sum = 0;
#pragma unroll 1
  for (int part = 0; part < 4; ++part) {
    if (part < 3 && t < 16) __pipeline_memcpy_async(&stage[(part + 1) & 1][t], row + 16 * part + 16 + t, 4);  // found
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    if (t == 32) {
#pragma unroll 1
      for (int k = 0; k < 16; ++k) sum += stage[part & 1][k];  // found
    }
  }
  if (t == 32) out[blockIdx.x] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
