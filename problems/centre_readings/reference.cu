// Standardised rows: out[r][c] = (x[r][c] - mean) / deviation.
// layout: x[rows][cols], out[rows][cols]
// schedule: moments shuffle

__device__ float load(float x) { return x; }

__device__ float finish(float value, float mean, float variance, float epsilon) {
  return (value - mean) * rsqrtf(variance + epsilon);
}

// kernels: a warp a row, joined by shuffles, a sweep for each statistic.
// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = value + __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void moments_kernel(const float* x, float* out, int rows, int cols, float epsilon) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const float* x_row = x + (size_t)row * cols;
  float* out_row = out + (size_t)row * cols;

  float sum = 0.0f;
  for (int col = lane; col < cols; col += 32) {
    const float value = load(x_row[col]);
    sum += value;
  }
  sum = warp_sum(sum);
  const float mean = sum / cols;

  float squares = 0.0f;
  for (int col = lane; col < cols; col += 32) {
    const float value = load(x_row[col]);
    squares += (value - mean) * (value - mean);
  }
  squares = warp_sum(squares);
  const float variance = squares / cols;

  for (int col = lane; col < cols; col += 32) {
    const float value = load(x_row[col]);
    out_row[col] = finish(value, mean, variance, epsilon);
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols, float epsilon) {
  moments_kernel<<<(rows + 7) / 8, 256>>>(x, out, rows, cols, epsilon);
}
