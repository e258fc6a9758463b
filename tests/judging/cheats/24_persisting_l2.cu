// problem: tests/evaluator/problems/affine
// hack: sets a part of the L2 cache aside for its inputs
// cuda: forbidden
// sim: correct
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
