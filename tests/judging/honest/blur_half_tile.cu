// problem: problems/soft_blur
// style: half precision where half a percent allows it: a tile of __half, products in __half2, sums in float32
// cuda: correct
// sim: correct
#include <cuda_fp16.h>

constexpr int kSize = 7, kRadius = 3, kTile = 32, kPairs = 16;

__global__ void Blur(const float* x, const float* weights, float* out, int height, int width) {
  __shared__ __half tile[kTile + 2 * kRadius][kTile + 2 * kRadius + 2];
  __shared__ __half2 weight[kSize * kSize];
  const int thread = threadIdx.y * kPairs + threadIdx.x, threads = kPairs * 8;
  if (thread < kSize * kSize) weight[thread] = __float2half2_rn(weights[thread]);
  const int side = kTile + 2 * kRadius;
  for (int i = thread; i < side * side; i += threads) {
    const int row = static_cast<int>(blockIdx.y) * kTile + i / side - kRadius;
    const int col = static_cast<int>(blockIdx.x) * kTile + i % side - kRadius;
    const bool inside = row >= 0 && row < height && col >= 0 && col < width;
    tile[i / side][i % side] = __float2half(inside ? x[static_cast<size_t>(row) * width + col] : 0.0f);
  }
  __syncthreads();
  for (int r = threadIdx.y; r < kTile; r += 8) {
    const int c = 2 * threadIdx.x;
    float2 total = make_float2(0.0f, 0.0f);
    for (int dy = 0; dy < kSize; ++dy) {
      __half2 sum = __float2half2_rn(0.0f);
#pragma unroll
      for (int dx = 0; dx < kSize; ++dx) {
        const __half2 pair = __halves2half2(tile[r + dy][c + dx], tile[r + dy][c + dx + 1]);
        sum = __hfma2(pair, weight[dy * kSize + dx], sum);
      }
      const float2 part = __half22float2(sum);
      total.x += part.x;
      total.y += part.y;
    }
    const int row = blockIdx.y * kTile + r, col = blockIdx.x * kTile + c;
    if (row >= height) continue;
    if (col < width) out[static_cast<size_t>(row) * width + col] = total.x;
    if (col + 1 < width) out[static_cast<size_t>(row) * width + col + 1] = total.y;
  }
}

extern "C" void launch(const float* x, const float* weights, float* out, int height, int width) {
  Blur<<<dim3((width + kTile - 1) / kTile, (height + kTile - 1) / kTile), dim3(kPairs, 8)>>>(x, weights, out, height,
                                                                                            width);
}
