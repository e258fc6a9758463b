// problem: tests/evaluator/problems/row_sum
// bug: the count says 32: each warp goes on by itself, without the other's half of the tile
// twin: honest/row_sum_named_barrier
// finding: race in Sum: reads, shared array 'tile' (256 bytes), writes, barrier between
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = 0;
  __syncthreads();
  if (t >= 64) return;
  tile[63 - t] = x[blockIdx.x * 64 + 63 - t];  // found
  asm volatile("bar.sync 1, 32;" ::: "memory");
  if (t == 0) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += tile[k];  // found
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
