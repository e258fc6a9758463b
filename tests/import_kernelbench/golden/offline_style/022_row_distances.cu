// Row distances: a number for each row.
// layout: first[rows][cols], second[rows][cols], output[rows]
// schedule: rows shuffle

__device__ float load(float first, float second) { return ((first - second) * (first - second)); }

__device__ float identity() { return 0.0f; }
__device__ float combine(float a, float b) { return a + b; }
__device__ float finish(float total, int cols) { return sqrtf((total / (float)cols)); }

// kernels: a warp a row, joined by shuffles.
// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_combine(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

__global__ void rows_kernel(const float* first, const float* second, float* output, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const float* first_row = first + (size_t)row * cols;
  const float* second_row = second + (size_t)row * cols;
  float total = identity();
  for (int col = lane; col < cols; col += 32) {
    total = combine(total, load(first_row[col], second_row[col]));
  }
  total = warp_combine(total);
  if (lane == 0) output[row] = finish(total, cols);
}

extern "C" void launch(const float* first, const float* second, float* output, int rows, int cols) {
  rows_kernel<<<(rows + 7) / 8, 256>>>(first, second, output, rows, cols);
}
