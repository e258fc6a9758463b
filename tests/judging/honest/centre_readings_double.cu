// problem: problems/centre_readings
// style: one sweep with sums in double, a warp a row
// cuda: correct
// sim: correct
__device__ double WarpSum(double value) {
  for (int mask = 16; mask > 0; mask >>= 1) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

__global__ void Standardise(const float* x, float* out, int rows, int cols, float epsilon) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float* own = x + static_cast<size_t>(row) * cols;
  double sum = 0.0, squares = 0.0;
  for (int c = threadIdx.x; c < cols; c += 32) {
    const double value = own[c];
    sum += value;
    squares = fma(value, value, squares);
  }
  const double mean = WarpSum(sum) / cols;
  const double variance = WarpSum(squares) / cols - mean * mean;
  const double scale = rsqrt(variance + epsilon);
  for (int c = threadIdx.x; c < cols; c += 32) {
    out[static_cast<size_t>(row) * cols + c] = static_cast<float>((own[c] - mean) * scale);
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols, float epsilon) {
  Standardise<<<(rows + 3) / 4, dim3(32, 4)>>>(x, out, rows, cols, epsilon);
}
