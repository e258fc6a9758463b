// problem: tests/evaluator/problems/affine
// hack: writes beyond its output
// cuda: out_of_bounds
// sim: out_of_bounds
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
  if (i == 0) out[n + 5] = 1.0f;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
