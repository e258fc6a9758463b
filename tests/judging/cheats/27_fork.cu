// problem: tests/evaluator/problems/affine
// hack: starts a second process
// cuda: forbidden
// sim: forbidden
extern "C" int fork();

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  fork();
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
