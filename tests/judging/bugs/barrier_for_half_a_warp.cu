// problem: tests/evaluator/problems/row_sum
// bug: half of the first warp runs through a barrier inside its branch, the other half waits at the next one
// twin: honest/row_sum_barrier_for_one_warp
// finding: divergent in Sum: waits at a barrier that the rest of its warp
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 16) {
    tile[t] += tile[t + 16] + tile[t + 32] + tile[t + 48];
    __syncthreads();  // found
    for (int d = 8; d > 0; d /= 2) {
      if (t < d) tile[t] += tile[t + d];
      __syncwarp(0xffff);
    }
  }
  __syncthreads();  // found
  if (t == 0) out[blockIdx.x] = tile[0];
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
