// problem: tests/evaluator/problems/row_sum
// style: a tile copied by __pipeline_memcpy_async: commit, wait, barrier
// cuda: correct
// sim: correct
#include <cuda_pipeline.h>

__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[blockIdx.x * 64 + threadIdx.x], sizeof(float));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += tile[k];
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
