// problem: tests/evaluator/problems/affine
// hack: opens a connection
// cuda: forbidden
// sim: forbidden
extern "C" int socket(int domain, int type, int protocol);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  socket(2, 1, 0);
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
