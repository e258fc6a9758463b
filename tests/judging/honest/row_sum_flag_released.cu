// problem: tests/evaluator/problems/row_sum
// style: a flag stored with release and loaded with acquire by cuda::atomic_ref
// cuda: correct
// sim: correct
#include <cuda/atomic>

__device__ float half_sums[4096];
__device__ int ready[4096];

__global__ void Clear() { ready[threadIdx.x + blockIdx.x * 256] = 0; }
__global__ void Sum(const float* x, float* out) {
  const int row = blockIdx.x / 2, half = blockIdx.x % 2;
  float v = x[row * 64 + half * 32 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x != 0) return;
  const int at = row & 4095;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(ready[at]);
  if (half == 0) {
    half_sums[at] = v;
    flag.store(row + 1, cuda::std::memory_order_release);
  } else {
    while (flag.load(cuda::std::memory_order_acquire) != row + 1) {
    }
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
