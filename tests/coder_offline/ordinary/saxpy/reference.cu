#define BLOCK_SIZE 128

__global__ void saxpy(const float* x, const float* y, float* out, float a, int n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = a * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, float a, int n) {
  dim3 block(BLOCK_SIZE);
  saxpy<<<(n + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(x, y, out, a, n);
}
