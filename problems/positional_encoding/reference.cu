// Sinusoidal positions: out[r][c] = x[r][c] + sin(p * 10000^(-d / 32)), c = 32 p + d.
// layout: x[rows][cols], out[rows][cols]
// schedule: broadcast

__device__ float coefficient(int column) {
  const int position = column / 32;
  const int dimension = column % 32;
  return sinf(position * powf(10000.0f, -dimension / 32.0f));
}

__device__ float apply(float x, float c) { return x + c; }

// kernels: neighbouring threads take neighbouring rows, an element each with its coefficient.
__global__ void broadcast_kernel(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = blockIdx.y;
  if (column >= cols) return;
  if (row < rows) {
    out[(size_t)row * cols + column] = apply(x[(size_t)row * cols + column], coefficient(column));
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const int row_units = rows;
  const int column_units = cols;
  const dim3 blocks((row_units + 255) / 256, column_units);
  broadcast_kernel<<<blocks, 256>>>(x, out, rows, cols);
}
