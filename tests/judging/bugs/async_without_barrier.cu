// problem: tests/evaluator/problems/row_sum
// bug: each thread waits for its own copies, nobody for those of the other warp
// twin: honest/row_sum_async_tile
// finding: race in Sum: reads, shared array 'tile' (256 bytes), writes, barrier between
#include <cuda_pipeline.h>

__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = 0;
  __syncthreads();
  __pipeline_memcpy_async(&tile[63 - threadIdx.x], &x[blockIdx.x * 64 + 63 - threadIdx.x], sizeof(float));  // found
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (threadIdx.x == 0) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += tile[k];  // found
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
