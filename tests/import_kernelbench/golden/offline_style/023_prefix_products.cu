// Prefix products: prefix results of each row.
// layout: x[rows][cols], output[rows][cols]
// schedule: scan shuffle

__device__ float load(float x) { return x; }

__device__ float identity() { return 1.0f; }
__device__ float combine(float a, float b) { return a * b; }

// kernels: a warp walks its row, scanning a segment by shuffles.
__global__ void scan_kernel(const float* x, float* output, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const float* x_row = x + (size_t)row * cols;
  float* output_row = output + (size_t)row * cols;
  float carry = identity();
  for (int start = 0; start < cols; start += 32) {
    const int col = start + lane;
    const float total = col < cols ? load(x_row[col]) : identity();
    float value = total;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, value, offset);
      if (lane >= offset) value = combine(left, value);
    }
    const float left = __shfl_up_sync(0xffffffffu, value, 1);
    const float before = lane == 0 ? carry : combine(carry, left);
    carry = combine(carry, __shfl_sync(0xffffffffu, value, 31));
    if (col < cols) output_row[col] = combine(before, total);
  }
}

extern "C" void launch(const float* x, float* output, int rows, int cols) {
  scan_kernel<<<(rows + 7) / 8, 256>>>(x, output, rows, cols);
}
