// Row softmax: softmax of each row.
// layout: x[rows][cols], output[rows][cols]
// schedule: softmax shuffle

__device__ float load(float x) { return (x * 0.5f); }
__device__ float finish(float value, float maximum, float sum) { return fdividef(expf(value - maximum), sum); }

// kernels: a warp a row, joined by shuffles, a sweep for each statistic.
constexpr float kLowest = -3.402823466e38f;  // the most negative float

// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = value + __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void softmax_kernel(const float* x, float* output, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const float* x_row = x + (size_t)row * cols;
  float* output_row = output + (size_t)row * cols;

  float maximum = kLowest;
  for (int col = lane; col < cols; col += 32) {
    const float value = load(x_row[col]);
    maximum = fmaxf(maximum, value);
  }
  maximum = warp_max(maximum);

  float sum = 0.0f;
  for (int col = lane; col < cols; col += 32) {
    const float value = load(x_row[col]);
    sum += expf(value - maximum);
  }
  sum = warp_sum(sum);

  for (int col = lane; col < cols; col += 32) {
    const float value = load(x_row[col]);
    output_row[col] = finish(value, maximum, sum);
  }
}

extern "C" void launch(const float* x, float* output, int rows, int cols) {
  softmax_kernel<<<(rows + 7) / 8, 256>>>(x, output, rows, cols);
}
