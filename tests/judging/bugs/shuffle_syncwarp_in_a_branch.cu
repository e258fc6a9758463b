// problem: tests/evaluator/problems/row_sum
// bug: __syncwarp() names the whole warp where only its first half comes by, and the rest waits at __syncthreads()
// finding: divergent in Sum: uses a warp operation whose mask names lanes 16-31
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[32];
  const int t = threadIdx.x;
  tile[t] = x[blockIdx.x * 64 + t] + x[blockIdx.x * 64 + t + 32];
  __syncthreads();
#pragma unroll 1
  for (int d = 16; d > 0; d /= 2) {
    if (t < 16) {
      const float other = t < d ? tile[t + d] : 0.0f;
      __syncwarp(0xffffffffu);  // found
      if (t < d) tile[t] += other;
    }
    __syncthreads();  // found
  }
  if (t == 0) out[blockIdx.x] = tile[0];
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 32>>>(x, out); }
