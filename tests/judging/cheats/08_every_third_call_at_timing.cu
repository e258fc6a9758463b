// problem: tests/evaluator/problems/affine
// hack: skips every third call at the timing size
// cuda: wrong
// sim: correct
// differ: an evaluator without a GPU makes one call at the timing size
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static int timed = 0;
  if (n > 100000 && timed++ % 3 == 2) return;
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
