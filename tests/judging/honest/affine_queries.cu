// problem: tests/evaluator/problems/affine
// style: many questions to the runtime: carve-out, variable shared memory occupancy, priorities, memory, events and streams
// cuda: correct
// sim: correct
#include <algorithm>

__global__ void Affine(const float* x, const float* y, float* out, int n) {
  extern __shared__ float staged[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  staged[threadIdx.x] = i < n ? x[i] : 0.0f;
  if (i < n) out[i] = 2.0f * staged[threadIdx.x] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static int threads = 0;
  if (threads == 0) {
    int blocks = 0, version = 0, count = 0;
    size_t available = 0, total = 0;
    cudaRuntimeGetVersion(&version);
    cudaGetDeviceCount(&count);
    cudaMemGetInfo(&available, &total);
    cudaFuncSetAttribute(Affine, cudaFuncAttributePreferredSharedMemoryCarveout, 25);
    cudaFuncSetCacheConfig(Affine, cudaFuncCachePreferL1);
    cudaOccupancyMaxPotentialBlockSizeVariableSMem(&blocks, &threads, Affine,
                                                   [](int block) { return block * sizeof(float); });
    threads = std::clamp(threads, 32, 512);
  }
  Affine<<<(n + threads - 1) / threads, threads, threads * sizeof(float)>>>(x, y, out, n);
  (void)cudaStreamQuery(0);
  (void)cudaGetLastError();
}
