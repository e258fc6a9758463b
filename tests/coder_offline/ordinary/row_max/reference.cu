__global__ void row_max(const float* x, float* out, int cols) {
  __shared__ float best[128];
  const int row = blockIdx.x;
  float top = -INFINITY;
  for (int j = threadIdx.x; j < cols; j += 128) {
    top = fmaxf(top, x[(size_t)row * cols + j]);
  }
  best[threadIdx.x] = top;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) best[threadIdx.x] = fmaxf(best[threadIdx.x], best[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) out[row] = best[0];
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  row_max<<<rows, 128>>>(x, out, cols);
}
