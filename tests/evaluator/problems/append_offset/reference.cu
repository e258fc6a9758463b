#include <cuda_fp16.h>

__global__ void add_kernel(__half* values, int* counts, long long n, __half offset) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  values[i] = __hadd(values[i], offset);
  counts[i] = (int)i;
}

extern "C" void add_offset(__half* values, int* counts, long long n, __half offset) {
  add_kernel<<<(unsigned)((n + 127) / 128), 128>>>(values, counts, n, offset);
}
