// problem: tests/evaluator/problems/affine
// hack: the identity with a correction that fits the first inputs seen
// cuda: wrong
// sim: wrong
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * 2.0f + 0.999f * y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
