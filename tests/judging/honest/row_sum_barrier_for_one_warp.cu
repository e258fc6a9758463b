// problem: tests/evaluator/problems/row_sum
// style: one warp runs through a barrier of its own branch and meets the other, which waits at another line
// cuda: correct
// sim: correct
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    tile[t] += tile[t + 32];
    __syncthreads();
    for (int d = 16; d > 0; d /= 2) {
      if (t < d) tile[t] += tile[t + d];
      __syncwarp();
    }
  }
  __syncthreads();
  if (t == 0) out[blockIdx.x] = tile[0];
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
