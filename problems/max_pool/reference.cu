// 7x7 maximum of each window.
// layout: x[height][width], out[height][width]
// schedule: stencil

constexpr int kRadius = 3;
constexpr float kLowest = -3.402823466e38f;  // the most negative float

__device__ float identity() { return kLowest; }
__device__ float border() { return kLowest; }
__device__ float accumulate(float total, float value) { return fmaxf(total, value); }

// kernels: windows are read from global memory, neighbouring threads in neighbouring rows.
constexpr int kWindow = 2 * kRadius + 1;

__device__ float load_or_border(const float* image, int row, int col, int height, int width) {
  const bool inside = row >= 0 && row < height && col >= 0 && col < width;
  return inside ? image[(size_t)row * width + col] : border();
}

__global__ void window_kernel(const float* x, float* out, int height, int width) {
  const int first_row = blockIdx.y * 16;
  const int first_col = blockIdx.x * 16;
  const int row = first_row + threadIdx.x;
  const int col = first_col + threadIdx.y;
  float total = identity();
  for (int dy = 0; dy < kWindow; ++dy) {
    for (int dx = 0; dx < kWindow; ++dx) {
      total = accumulate(total, load_or_border(x, row + dy - kRadius, col + dx - kRadius, height, width));
    }
  }
  if (row < height && col < width) out[(size_t)row * width + col] = total;
}

extern "C" void launch(const float* x, float* out, int height, int width) {
  const dim3 blocks((width + 15) / 16, (height + 15) / 16);
  window_kernel<<<blocks, dim3(16, 16)>>>(x, out, height, width);
}
