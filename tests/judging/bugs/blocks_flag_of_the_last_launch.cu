// problem: tests/evaluator/problems/row_sum
// bug: every launch counts its rows from 0, so that the flags of the launch before say that sums are ready
// twin: honest/row_sum_flag_handed_over
// finding: race in Sum: reads, 'half_sums' (16 bytes), writes, no synchronisation of the blocks
__device__ float half_sums[4];
__device__ volatile int ready[4];

__global__ void Clear() { ready[threadIdx.x] = 0; }
__global__ void Sum(const float* x, float* out) {
  const int row = blockIdx.x / 2, half = blockIdx.x % 2;
  float v = x[row * 64 + half * 32 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x != 0) return;
  if (half == 0) {
    half_sums[row] = v;  // found
    __threadfence();
    ready[row] = row + 1;
  } else {
    while (ready[row] != row + 1) {
    }
    __threadfence();
    out[row] = v + half_sums[row];  // found
  }
}

extern "C" void launch(const float* x, float* out, int rows) {
  Clear<<<1, 4>>>();
  for (int first = 0; first < rows; first += 4) {
    const int some = rows - first < 4 ? rows - first : 4;
    Sum<<<2 * some, 32>>>(x + first * 64, out + first);
  }
}
