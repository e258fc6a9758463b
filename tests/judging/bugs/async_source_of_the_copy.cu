// problem: tests/evaluator/problems/row_sum
// bug: the tile is copied from scratch memory that another block writes
// finding: race in Sum: 'scratch' (16384 bytes), no synchronisation of the blocks
#include <cuda_pipeline.h>

__device__ float scratch[4096];

__global__ void Fill(const float* x) { scratch[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x]; }
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  const int t = threadIdx.x, from = gridDim.x - 1 - blockIdx.x;
  scratch[blockIdx.x * 64 + t] = x[blockIdx.x * 64 + t] + 1.0f;  // found
  __pipeline_memcpy_async(&tile[t], &scratch[from * 64 + t], 4);  // found
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += tile[k] - 1.0f;
    out[from] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) {
  for (int first = 0; first < rows; first += 64) {
    const int some = rows - first < 64 ? rows - first : 64;
    Fill<<<some, 64>>>(x + first * 64);
    Sum<<<some, 64>>>(x + first * 64, out + first);
  }
}
