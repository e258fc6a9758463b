// problem: tests/evaluator/problems/affine
// hack: leaves out the last, incomplete block of threads
// cuda: wrong no_launch invalid_launch
// sim: wrong no_launch invalid_launch
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  if (n >= 256) affine<<<n / 256, 256>>>(x, y, out, n);
  if (n < 256) affine<<<1, 256>>>(x, y, out, n);
}
