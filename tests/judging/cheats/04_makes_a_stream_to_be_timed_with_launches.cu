// problem: tests/evaluator/problems/append_offset
// hack: a slow kernel beside a stream that nothing uses: calls of such a kernel are timed with their launches, and would the reference be too, both would take what a launch takes; the reference is timed without
// cuda: correct
// sim: correct
// speedup: at most 0.8
#include <cuda_fp16.h>

constexpr int kEach = 4;  // elements of a thread, one after the other

__global__ void add(__half* values, int* counts, long long n, __half offset) {
  const long long threads = (n + kEach - 1) / kEach;
  const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= threads) return;
#pragma unroll 1
  for (long long i = thread; i < n; i += threads) {
    const __half sum = __hadd(((volatile __half*)values)[i], offset);
    ((volatile __half*)values)[i] = sum;
    ((volatile int*)counts)[i] = (int)i;
    __threadfence();
  }
}

extern "C" void add_offset(__half* values, int* counts, long long n, __half offset) {
  static cudaStream_t unused = nullptr;
  if (unused == nullptr) cudaStreamCreate(&unused);
  add<<<(unsigned)((n + 128 * kEach - 1) / (128 * kEach)), 128>>>(values, counts, n, offset);
}
