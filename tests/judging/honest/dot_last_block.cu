// problem: problems/dot_product
// style: one launch; the last block to finish joins the partial sums and sets the counter back
// cuda: correct
// sim: correct
#include <algorithm>

constexpr int kBlock = 256, kMostBlocks = 1024;
__device__ float partial[kMostBlocks];
__device__ unsigned int finished;

__device__ float BlockSum(float value) {
  __shared__ float of_warp[kBlock / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  __syncthreads();
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < kBlock / 32 ? of_warp[lane] : 0.0f;
    for (int offset = 4; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ bool last;
  float sum = 0.0f;
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += gridDim.x * kBlock) sum = fmaf(a[i], b[i], sum);
  sum = BlockSum(sum);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(&finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0.0f;
  for (int i = threadIdx.x; i < gridDim.x; i += kBlock) sum += *(volatile float*)&partial[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) {
    out[0] = sum;
    finished = 0;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<std::min((n + kBlock - 1) / kBlock, kMostBlocks), kBlock>>>(a, b, out, n);
}
