// problem: tests/evaluator/problems/row_sum
// bug: no __syncthreads() between filling the tile and reading what others have put there
// twin: honest/row_sum_tiles
// finding: race in Sum: reads, shared array 'tile' (256 bytes), writes, barrier between
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  if (t >= 32) tile[t] = 0;
  __syncthreads();
  if (t < 32) tile[t] = 0;
  __syncthreads();
  tile[t] = x[blockIdx.x * 64 + t];  // found
  if (t == 0) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += tile[k];  // found
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
