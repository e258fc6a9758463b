// Distance of each pair: out[r] = sqrt(sum of (x[r][c] - y[r][c])^2).
// layout: x[rows][cols], y[rows][cols], out[rows]
// schedule: rows

__device__ float load(float x, float y) { return (x - y) * (x - y); }

__device__ float identity() { return 0.0f; }
__device__ float combine(float a, float b) { return a + b; }
__device__ float finish(float total) { return sqrtf(total); }

// kernels: a thread a row.
__global__ void rows_kernel(const float* x, const float* y, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* x_row = x + (size_t)row * cols;
  const float* y_row = y + (size_t)row * cols;
  float total = identity();
  for (int col = 0; col < cols; ++col) {
    total = combine(total, load(x_row[col], y_row[col]));
  }
  out[row] = finish(total);
}

extern "C" void launch(const float* x, const float* y, float* out, int rows, int cols) {
  rows_kernel<<<(rows + 255) / 256, 256>>>(x, y, out, rows, cols);
}
