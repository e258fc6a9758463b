// problem: tests/evaluator/problems/affine
// style: cudaLaunchKernel with an array of arguments; a cluster-free cudaFuncAttributes query picks the block
// cuda: correct
// sim: correct
#include <algorithm>

__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, Affine);
  const int block = std::min(192, attributes.maxThreadsPerBlock);
  void* arguments[] = {&x, &y, &out, &n};
  cudaLaunchKernel(reinterpret_cast<const void*>(Affine), dim3((n + block - 1) / block), dim3(block), arguments, 0, 0);
}
