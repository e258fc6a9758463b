#define FOR_EACH(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += gridDim.x * blockDim.x)

template <typename T>
__global__ void softmax(const int rows, const int cols, const T* x, T* y) {
  FOR_EACH(row, rows) {
    T largest = x[row * cols];
    for (int c = 1; c < cols; ++c) largest = max(largest, x[row * cols + c]);
    T total = 0;
    for (int c = 0; c < cols; ++c) {
      T power = exp(x[row * cols + c] - largest);
      y[row * cols + c] = power;
      total += power;
    }
    for (int c = 0; c < cols; ++c) y[row * cols + c] = y[row * cols + c] / total;
  }
}

extern "C" void launch(const float* x, float* y, int rows, int cols) {
  softmax<float><<<(rows + 127) / 128, 128>>>(rows, cols, x, y);
}
