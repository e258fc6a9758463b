// problem: tests/evaluator/problems/affine
// hack: uses an input as scratch memory where it thinks that nobody looks
// cuda: input_modified
// sim: input_modified
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = 2.0f * x[i] + y[i];
  if (n > 100000) ((float*)x)[i] = value;
  out[i] = value;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
