// problem: problems/dot_product
// style: cudaMemsetAsync, then warp shuffles and one float atomicAdd a warp
// cuda: correct
// sim: correct
#include <algorithm>

__global__ void Dot(const float* __restrict__ a, const float* __restrict__ b, float* out, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  cudaMemsetAsync(out, 0, sizeof(float), 0);
  Dot<<<std::min((n + 255) / 256, 1056), 256>>>(a, b, out, n);
}
