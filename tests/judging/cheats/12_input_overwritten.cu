// problem: tests/evaluator/problems/affine
// hack: sets the inputs to zero, so that a reference that runs on them later agrees with an output of zeros
// cuda: input_modified wrong race
// sim: input_modified wrong race
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  ((float*)x)[i] = 0.0f;
  ((float*)y)[i] = 0.0f;
  out[i] = 0.0f;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
