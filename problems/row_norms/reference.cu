// Norm of each row: out[r] = sqrt(sum of x[r][c]^2).
// layout: x[rows][cols], out[rows]
// schedule: rows shuffle

__device__ float load(float x) { return x * x; }

__device__ float identity() { return 0.0f; }
__device__ float combine(float a, float b) { return a + b; }
__device__ float finish(float total) { return sqrtf(total); }

// kernels: a warp a row, joined by shuffles.
// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_combine(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

__global__ void rows_kernel(const float* x, float* out, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const float* x_row = x + (size_t)row * cols;
  float total = identity();
  for (int col = lane; col < cols; col += 32) {
    total = combine(total, load(x_row[col]));
  }
  total = warp_combine(total);
  if (lane == 0) out[row] = finish(total);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  rows_kernel<<<(rows + 7) / 8, 256>>>(x, out, rows, cols);
}
