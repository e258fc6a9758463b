// problem: tests/evaluator/problems/affine
// hack: does nothing at all at the timing size: a time of 0 for a speedup without bounds
// cuda: wrong implausible
// sim: no_launch
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  if (n > 100000) return;
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
