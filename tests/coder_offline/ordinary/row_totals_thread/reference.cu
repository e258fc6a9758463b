__global__ void totals(const float* x, float* y, int rows, int cols) {
  int r = threadIdx.x + blockIdx.x * blockDim.x;
  if (r < rows) {
    float total = 0.0f;
    for (int c = 0; c < cols; c++) {
      total = total + x[r * cols + c];
      y[r * cols + c] = total;
    }
  }
}

extern "C" void launch(const float* x, float* y, int rows, int cols) {
  totals<<<(rows + 63) / 64, 64>>>(x, y, rows, cols);
}
