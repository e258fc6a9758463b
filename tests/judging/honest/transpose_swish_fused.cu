// problem: problems/transpose_swish
// style: fused: tile, swish and sum in one kernel; blocks of 96 threads, tiles of 24 x 32
// cuda: correct
// sim: correct
constexpr int kRows = 24, kCols = 32, kThreads = 96;

__device__ __forceinline__ float Swish(float u) { return u / (1.0f + __expf(-u)); }

__global__ void Fused(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int rows,
                      int cols) {
  __shared__ float tile[kRows][kCols + 1];
  const int first_row = blockIdx.y * kRows, first_col = blockIdx.x * kCols;
  for (int i = threadIdx.x; i < kRows * kCols; i += kThreads) {
    const int r = i / kCols, c = i % kCols;
    if (first_row + r < rows && first_col + c < cols) {
      tile[r][c] = Swish(x[static_cast<size_t>(first_row + r) * cols + first_col + c]);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kCols; i += kThreads) {
    const int c = i / kRows, r = i % kRows;
    if (first_row + r >= rows || first_col + c >= cols) continue;
    const size_t at = static_cast<size_t>(first_col + c) * rows + first_row + r;
    out[at] = tile[r][c] + y[at];
  }
}

extern "C" void launch(const float* x, const float* y, float* out, int rows, int cols) {
  Fused<<<dim3((cols + kCols - 1) / kCols, (rows + kRows - 1) / kRows), kThreads>>>(x, y, out, rows, cols);
}
