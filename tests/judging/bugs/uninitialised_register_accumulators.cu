// problem: problems/soft_blur
// bug: the accumulators of the tensor cores are never filled
// twin: honest/blur_tensor_cores
// finding: uninitialised in Blur: stores a matrix that comes from a variable that was never set
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// A warp computes 16 x 16 pixels: for each dy, out += pixels[16 rows][32 columns] * band[32][16], band[i][j] = w[i -
// j].
constexpr int kSize = 7, kRadius = 3;

__global__ __launch_bounds__(32) void Blur(const float* x, const float* weights, float* out, int height, int width) {
  __shared__ alignas(32) __half pixels[16 + 2 * kRadius][32];
  __shared__ alignas(32) __half band[kSize][32][16];
  __shared__ alignas(32) float result[16][16];
  const int first_row = blockIdx.y * 16, first_col = blockIdx.x * 16, lane = threadIdx.x;
  for (int r = 0; r < 16 + 2 * kRadius; ++r) {
    const int row = first_row + r - kRadius, col = first_col + lane - kRadius;
    const bool inside = row >= 0 && row < height && col >= 0 && col < width && lane < 16 + 2 * kRadius;
    pixels[r][lane] = __float2half(inside ? x[static_cast<size_t>(row) * width + col] : 0.0f);
  }
  for (int i = lane; i < kSize * 32 * 16; i += 32) {
    const int dy = i / 512, k = i / 16 % 32, j = i % 16;
    const int dx = k - j;
    band[dy][k][j] = __float2half(dx >= 0 && dx < kSize ? weights[dy * kSize + dx] : 0.0f);
  }
  __syncwarp();
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> total;
  for (int dy = 0; dy < kSize; ++dy) {
    for (int half = 0; half < 2; ++half) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
      wmma::load_matrix_sync(a, &pixels[dy][16 * half], 32);
      wmma::load_matrix_sync(b, &band[dy][16 * half][0], 16);
      wmma::mma_sync(total, a, b, total);  // found
    }
  }
  wmma::store_matrix_sync(&result[0][0], total, 16, wmma::mem_row_major);  // found
  __syncwarp();
  for (int i = lane; i < 256; i += 32) {
    const int row = first_row + i / 16, col = first_col + i % 16;
    if (row < height && col < width) out[static_cast<size_t>(row) * width + col] = result[i / 16][i % 16];
  }
}

extern "C" void launch(const float* x, const float* weights, float* out, int height, int width) {
  Blur<<<dim3((width + 15) / 16, (height + 15) / 16), 32>>>(x, weights, out, height, width);
}
