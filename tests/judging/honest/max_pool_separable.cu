// problem: problems/max_pool
// style: rows first, then columns, both from shared memory in one launch
// cuda: correct
// sim: correct
constexpr int kRadius = 3, kWidth = 32, kHeight = 16;

__global__ void MaxPool(const float* x, float* out, int height, int width) {
  __shared__ float raw[kHeight + 2 * kRadius][kWidth + 2 * kRadius];
  __shared__ float of_rows[kHeight + 2 * kRadius][kWidth];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  constexpr int kSide = kWidth + 2 * kRadius, kRows = kHeight + 2 * kRadius;
  for (int i = thread; i < kRows * kSide; i += threads) {
    const int row = (int)blockIdx.y * kHeight + i / kSide - kRadius,
              col = (int)blockIdx.x * kWidth + i % kSide - kRadius;
    const bool inside = (unsigned)row < (unsigned)height && (unsigned)col < (unsigned)width;
    raw[i / kSide][i % kSide] = inside ? x[(size_t)row * width + col] : -INFINITY;
  }
  __syncthreads();
  for (int i = thread; i < kRows * kWidth; i += threads) {
    const float* from = &raw[i / kWidth][i % kWidth];
    float m = from[0];
#pragma unroll
    for (int d = 1; d <= 2 * kRadius; ++d) m = fmaxf(m, from[d]);
    of_rows[i / kWidth][i % kWidth] = m;
  }
  __syncthreads();
  for (int r = threadIdx.y; r < kHeight; r += blockDim.y) {
    float m = -INFINITY;
#pragma unroll
    for (int d = 0; d <= 2 * kRadius; ++d) m = fmaxf(m, of_rows[r + d][threadIdx.x]);
    const int row = blockIdx.y * kHeight + r, col = blockIdx.x * kWidth + threadIdx.x;
    if (row < height && col < width) out[(size_t)row * width + col] = m;
  }
}

extern "C" void launch(const float* x, float* out, int height, int width) {
  MaxPool<<<dim3((width + kWidth - 1) / kWidth, (height + kHeight - 1) / kHeight), dim3(kWidth, 8)>>>(x, out, height,
                                                                                                      width);
}
