// problem: tests/evaluator/problems/row_sum
// style: one block hands its result to the next by a flag: fence and volatile on both sides
// cuda: correct
// sim: correct
__device__ float half_sums[4096];
__device__ volatile int ready[4096];

__global__ void Clear() { ready[threadIdx.x + blockIdx.x * 256] = 0; }
__global__ void Sum(const float* x, float* out) {
  const int row = blockIdx.x / 2, half = blockIdx.x % 2;
  float v = x[row * 64 + half * 32 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x != 0) return;
  const int at = row & 4095;
  if (half == 0) {
    half_sums[at] = v;
    __threadfence();
    ready[at] = row + 1;
  } else {
    while (ready[at] != row + 1) {
    }
    __threadfence();
    out[row] = v + half_sums[at];
  }
}

extern "C" void launch(const float* x, float* out, int rows) {
  for (int first = 0; first < rows; first += 4096) {
    Clear<<<16, 256>>>();
    const int some = rows - first < 4096 ? rows - first : 4096;
    Sum<<<2 * some, 32>>>(x + first * 64, out + first);
  }
}
