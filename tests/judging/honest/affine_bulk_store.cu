// problem: tests/evaluator/problems/affine
// style: tiles leave shared memory by bulk copies, each read before the next is made
// cuda: correct
// sim: correct
#include <cstdint>

__device__ uint32_t Address(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

constexpr int kFloats = 128, kThreads = 128;

__global__ void Affine(const float* x, const float* y, float* out, int n) {
  __shared__ alignas(128) float tile[kFloats];
  const int step = gridDim.x * kFloats;
  int first = blockIdx.x * kFloats;
  for (; first + kFloats <= n; first += step) {
    for (int i = threadIdx.x; i < kFloats; i += kThreads) {
      tile[i] = 2.0f * x[first + i] + y[first + i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 32) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + first), "r"(Address(tile)), "n"(4 * kFloats) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
  for (int i = first + threadIdx.x; i < n; i += kThreads) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<8, kThreads>>>(x, y, out, n);
}
