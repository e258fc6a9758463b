// 7x7 maximum of each window.
// layout: x[height][width], out[height][width]
// schedule: stencil coalesce register=4 tile=32

constexpr int kRadius = 3;
constexpr float kLowest = -3.402823466e38f;  // the most negative float

__device__ float identity() { return kLowest; }
__device__ float border() { return kLowest; }
__device__ float accumulate(float total, float value) { return fmaxf(total, value); }

// kernels: a block computes a 32x32 tile of outputs from shared memory, 4 outputs a thread, neighbouring threads in neighbouring columns.
constexpr int kWindow = 2 * kRadius + 1;

__global__ void window_kernel(const float* x, float* out, int height, int width) {
  const int first_row = blockIdx.y * 32;
  const int first_col = blockIdx.x * 32;
  const int row = first_row + threadIdx.y * 4;
  const int col = first_col + threadIdx.x;
  __shared__ float tile[32 + 2 * kRadius][32 + 2 * kRadius];
  for (int i = threadIdx.y * 32 + threadIdx.x; i < (32 + 2 * kRadius) * (32 + 2 * kRadius); i += 32 * 8) {
    const int tile_row = i / (32 + 2 * kRadius);
    const int tile_col = i % (32 + 2 * kRadius);
    const int from_row = first_row + tile_row - kRadius;
    const int from_col = first_col + tile_col - kRadius;
    const bool inside = from_row >= 0 && from_row < height && from_col >= 0 && from_col < width;
    const float value = inside ? x[(size_t)from_row * width + from_col] : border();
    tile[tile_row][tile_col] = value;
  }
  __syncthreads();
  float totals[4];
  for (int r = 0; r < 4; ++r) totals[r] = identity();
  for (int dx = 0; dx < kWindow; ++dx) {
    float column[kWindow + 4 - 1];  // serves all outputs of the thread
    for (int dy = 0; dy < kWindow + 4 - 1; ++dy) column[dy] = tile[threadIdx.y * 4 + dy][threadIdx.x + dx];
    for (int dy = 0; dy < kWindow; ++dy) {
      for (int r = 0; r < 4; ++r) totals[r] = accumulate(totals[r], column[r + dy]);

    }
  }
  for (int r = 0; r < 4; ++r) {
    if (row + r < height && col < width) out[(size_t)(row + r) * width + col] = totals[r];
  }
}

extern "C" void launch(const float* x, float* out, int height, int width) {
  const dim3 blocks((width + 31) / 32, (height + 31) / 32);
  window_kernel<<<blocks, dim3(32, 8)>>>(x, out, height, width);
}
