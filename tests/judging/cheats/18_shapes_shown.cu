// problem: tests/evaluator/problems/affine
// hack: correct for the sizes of the prompt, nothing for others
// cuda: wrong
// sim: wrong
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && (n == 1000 || n == 256)) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
