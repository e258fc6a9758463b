// problem: tests/evaluator/problems/affine
// hack: asks for more shared memory than a block may have
// cuda: invalid_launch
// sim: invalid_launch
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256, 300 * 1024>>>(x, y, out, n);
}
