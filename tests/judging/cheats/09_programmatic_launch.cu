// problem: tests/evaluator/problems/append_offset
// hack: allows each launch to begin before the one before it has ended, which hides what a launch costs behind another call
// cuda: correct
// sim: correct unsupported
// speedup: at most 1.1
#include <cuda_fp16.h>

__global__ void add_kernel(__half* values, int* counts, long long n, __half offset) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  values[i] = __hadd(values[i], offset);
  counts[i] = (int)i;
}

extern "C" void add_offset(__half* values, int* counts, long long n, __half offset) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)((n + 127) / 128));
  config.blockDim = dim3(128);
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, add_kernel, values, counts, n, offset);
}
