constexpr int kThreads = 256;

__global__ void BiasRelu(const float* x, const float* bias, float* y, int total, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < total) {
    float value = x[i] + bias[i % cols];
    if (value < 0.0f) {
      value = 0.0f;
    }
    y[i] = value;
  }
}

extern "C" void launch(const float* x, const float* bias, float* y, int rows, int cols) {
  const int total = rows * cols;
  const int blocks = (total + kThreads - 1) / kThreads;
  BiasRelu<<<blocks, kThreads>>>(x, bias, y, total, cols);
}
