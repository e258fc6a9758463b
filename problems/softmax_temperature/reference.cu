// Softmax of each row with a bias and a temperature.
// layout: x[rows][cols], bias[cols], out[rows][cols]
// schedule: softmax cooperate

__device__ float load(float x, float bias, float heat) { return heat * (x + bias); }
__device__ float finish(float value, float maximum, float sum) { return fdividef(expf(value - maximum), sum); }

// kernels: a block a row, joined by a tree in shared memory, a sweep for each statistic.
constexpr float kLowest = -3.402823466e38f;  // the most negative float

// Every thread of a block gets the joined value of all threads.
__device__ float block_max(float value) {
  __shared__ float values[256];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int active = 128; active > 0; active /= 2) {
    if (threadIdx.x < active) values[threadIdx.x] = fmaxf(values[threadIdx.x], values[threadIdx.x + active]);
    __syncthreads();
  }
  value = values[0];
  __syncthreads();  // values may be used again
  return value;
}

// Every thread of a block gets the joined value of all threads.
__device__ float block_sum(float value) {
  __shared__ float values[256];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int active = 128; active > 0; active /= 2) {
    if (threadIdx.x < active) values[threadIdx.x] = values[threadIdx.x] + values[threadIdx.x + active];
    __syncthreads();
  }
  value = values[0];
  __syncthreads();  // values may be used again
  return value;
}

__global__ void softmax_kernel(const float* x, const float* bias, float* out, int rows, int cols, float heat) {
  const int row = blockIdx.x;
  const float* x_row = x + (size_t)row * cols;
  float* out_row = out + (size_t)row * cols;

  float maximum = kLowest;
  for (int col = threadIdx.x; col < cols; col += blockDim.x) {
    const float value = load(x_row[col], bias[col], heat);
    maximum = fmaxf(maximum, value);
  }
  maximum = block_max(maximum);

  float sum = 0.0f;
  for (int col = threadIdx.x; col < cols; col += blockDim.x) {
    const float value = load(x_row[col], bias[col], heat);
    sum += expf(value - maximum);
  }
  sum = block_sum(sum);

  for (int col = threadIdx.x; col < cols; col += blockDim.x) {
    const float value = load(x_row[col], bias[col], heat);
    out_row[col] = finish(value, maximum, sum);
  }
}

extern "C" void launch(const float* x, const float* bias, float* out, int rows, int cols, float heat) {
  softmax_kernel<<<rows, 256>>>(x, bias, out, rows, cols, heat);
}
