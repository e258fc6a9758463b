// Each row of x over its root mean square: a template and macros.
#ifndef ROWS
#define ROWS(blocks) (blocks)
#endif
#define X(r, i) x[(r) * cols + (i)]
#define PUT(r, i, v) \
  do {               \
    y[(r) * cols + (i)] = (v); \
  } while (0)

template <int BLOCK>
__global__ void scale_rows(const float* x, float* y, int cols) {
  __shared__ float partial[BLOCK];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += BLOCK) sum += X(blockIdx.x, i) * X(blockIdx.x, i);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int s = BLOCK / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  const float scale = rsqrtf(partial[0] / cols + 1e-6f);
  for (int i = threadIdx.x; i < cols; i += BLOCK) {
    y[blockIdx.x * cols + i] = X(blockIdx.x, i) * scale;
  }
}

extern "C" void launch(const float* x, float* y, int rows, int cols) {
  scale_rows<128><<<ROWS(rows), 128>>>(x, y, cols);
}
