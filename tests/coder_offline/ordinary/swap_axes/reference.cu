__global__ void swap_axes(const float* x, float* y, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c >= cols || r >= rows) return;
  y[c * rows + r] = x[r * cols + c];
}

extern "C" void launch(const float* x, float* y, int rows, int cols) {
  dim3 block(16, 16);
  swap_axes<<<dim3((cols + 15) / 16, (rows + 15) / 16), block>>>(x, y, rows, cols);
}
