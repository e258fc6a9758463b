// problem: tests/evaluator/problems/affine
// hack: leaves out the second input where it is small
// cuda: wrong
// sim: wrong
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + (fabsf(y[i]) > 1e-2f ? y[i] : 0.0f);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
