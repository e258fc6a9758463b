// Softmax of each row with a bias and a temperature.
// layout: x[rows][cols], bias[cols], out[rows][cols]
// schedule: softmax

__device__ float load(float x, float bias, float heat) { return heat * (x + bias); }
__device__ float finish(float value, float maximum, float sum) { return fdividef(expf(value - maximum), sum); }

// kernels: a thread a row, a sweep for each statistic.
constexpr float kLowest = -3.402823466e38f;  // the most negative float

__global__ void softmax_kernel(const float* x, const float* bias, float* out, int rows, int cols, float heat) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* x_row = x + (size_t)row * cols;
  float* out_row = out + (size_t)row * cols;

  float maximum = kLowest;
  for (int col = 0; col < cols; ++col) {
    const float value = load(x_row[col], bias[col], heat);
    maximum = fmaxf(maximum, value);
  }

  float sum = 0.0f;
  for (int col = 0; col < cols; ++col) {
    const float value = load(x_row[col], bias[col], heat);
    sum += expf(value - maximum);
  }

  for (int col = 0; col < cols; ++col) {
    const float value = load(x_row[col], bias[col], heat);
    out_row[col] = finish(value, maximum, sum);
  }
}

extern "C" void launch(const float* x, const float* bias, float* out, int rows, int cols, float heat) {
  softmax_kernel<<<(rows + 255) / 256, 256>>>(x, bias, out, rows, cols, heat);
}
