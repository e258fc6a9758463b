// problem: tests/evaluator/problems/row_sum
// bug: the copy into shared memory is committed and never waited for
// twin: honest/row_sum_async_tile
// finding: race in Sum: reads 4 bytes, shared array 'tile' (256 bytes), by cp.async, no wait has completed that copy
#include <cuda_pipeline.h>

__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[blockIdx.x * 64 + threadIdx.x], sizeof(float));  // found
  __pipeline_commit();
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += tile[k];  // found
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
