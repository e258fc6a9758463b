// Windowed frames: out[r][c] = x[r][c] * w(c).
// layout: x[rows][cols], out[rows][cols]
// schedule: broadcast

__device__ float coefficient(int column, int cols, float power) {
  const float phase = fdividef((float)column, (float)cols);
  const float taper = expf(-power * powf(fabsf(2.0f * phase - 1.0f), power));
  return taper * (0.5f - 0.5f * cosf(6.2831853072f * phase));
}

__device__ float apply(float x, float c) { return x * c; }

// kernels: neighbouring threads take neighbouring rows, an element each with its coefficient.
__global__ void broadcast_kernel(const float* x, float* out, int rows, int cols, float power) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = blockIdx.y;
  if (column >= cols) return;
  if (row < rows) {
    out[(size_t)row * cols + column] = apply(x[(size_t)row * cols + column], coefficient(column, cols, power));
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols, float power) {
  const int row_units = rows;
  const int column_units = cols;
  const dim3 blocks((row_units + 255) / 256, column_units);
  broadcast_kernel<<<blocks, 256>>>(x, out, rows, cols, power);
}
