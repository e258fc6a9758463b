// problem: problems/dot_product
// style: a cooperative launch with grid.sync() between the partial sums and their join
// cuda: correct
// sim: correct
#include <cooperative_groups.h>

__device__ float partial[32];

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) partial[blockIdx.x] = v;
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
    v = 0;
    for (int k = 0; k < gridDim.x; ++k) v += partial[k];
    out[0] = v;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  void* arguments[] = {&a, &b, &out, &n};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(Dot), dim3(32), dim3(32), arguments, 0, nullptr);
}
