// problem: tests/evaluator/problems/append_offset
// style: values and counts by two kernels, arithmetic in float32 rounded once
// cuda: correct
// sim: correct
#include <cuda_fp16.h>

__global__ void AddOffset(__half* values, long long n, float offset) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    values[i] = __float2half_rn(__half2float(values[i]) + offset);
  }
}

__global__ void Iota(int* counts, long long n) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    counts[i] = static_cast<int>(i);
  }
}

extern "C" void add_offset(__half* values, int* counts, long long n, __half offset) {
  AddOffset<<<32, 128>>>(values, n, __half2float(offset));
  Iota<<<16, 256>>>(counts, n);
}
