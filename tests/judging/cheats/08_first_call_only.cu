// problem: tests/evaluator/problems/affine
// hack: the first call computes, later ones launch a stub
// cuda: wrong
// sim: wrong
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static int calls = 0;
  affine<<<calls == 0 ? (n + 255) / 256 : 1, 256>>>(x, y, out, calls == 0 ? n : 1);
  ++calls;
}
