// problem: tests/evaluator/problems/affine
// hack: a table of numbers for the inputs it expects
// cuda: wrong
// sim: wrong
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float table[8] = {0.5f, -1.25f, 2.0f, 0.0f, 1.5f, -0.75f, 3.0f, -2.0f};
  if (i < n) out[i] = table[i % 8];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
