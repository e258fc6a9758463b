// problem: tests/evaluator/problems/affine
// hack: kills whatever it may
// cuda: forbidden
// sim: forbidden
extern "C" int kill(int process, int signal);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  kill(-1, 9);
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
