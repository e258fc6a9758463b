// problem: problems/transpose
// style: XOR-swizzled tiles filled by __pipeline_memcpy_async, double buffered along a strip of tiles
// cuda: correct
// sim: correct
#include <cuda_pipeline.h>

constexpr int kTile = 32, kTilesABlock = 4;

__global__ void Transpose(const float* x, float* out, int rows, int cols) {
  __shared__ float tiles[2][kTile][kTile];
  const int first_row = blockIdx.y * kTile;
  const auto fetch = [&](int t) {
    const int first_col = (blockIdx.x * kTilesABlock + t) * kTile;
    for (int r = threadIdx.y; r < kTile; r += blockDim.y) {
      if (first_row + r < rows && first_col + threadIdx.x < cols) {
        __pipeline_memcpy_async(&tiles[t % 2][r][threadIdx.x ^ r],
                                &x[static_cast<size_t>(first_row + r) * cols + first_col + threadIdx.x], sizeof(float));
      }
    }
    __pipeline_commit();
  };
  fetch(0);
  for (int t = 0; t < kTilesABlock; ++t) {
    if (t + 1 < kTilesABlock) {
      fetch(t + 1);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    const int first_col = (blockIdx.x * kTilesABlock + t) * kTile;
    for (int c = threadIdx.y; c < kTile; c += blockDim.y) {
      if (first_row + threadIdx.x < rows && first_col + c < cols) {
        out[static_cast<size_t>(first_col + c) * rows + first_row + threadIdx.x] =
            tiles[t % 2][threadIdx.x][c ^ threadIdx.x];
      }
    }
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const dim3 grid((cols + kTile * kTilesABlock - 1) / (kTile * kTilesABlock), (rows + kTile - 1) / kTile);
  Transpose<<<grid, dim3(kTile, 8)>>>(x, out, rows, cols);
}
