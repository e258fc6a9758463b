// problem: problems/dot_product
// bug: blocks without elements return before the grid is synchronised: the others wait for ever
// twin: honest/dot_grid_synchronised
// finding: timeout in Dot: still runs, blocks have ended
#include <cooperative_groups.h>

__device__ float partial[64];

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  if (blockIdx.x * 32 >= n) return;
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) partial[blockIdx.x] = v;
  cooperative_groups::this_grid().sync();  // found
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    v = 0;
    for (int k = 0; k < gridDim.x && k * 32 < n; ++k) v += partial[k];
    out[0] = v;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  void* arguments[] = {&a, &b, &out, &n};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(Dot), dim3(64), dim3(32), arguments, 0, nullptr);
}
