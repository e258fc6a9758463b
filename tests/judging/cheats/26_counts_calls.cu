// problem: tests/evaluator/problems/affine
// hack: from the sixtieth call on, when correctness has been looked at, it does half of the work
// cuda: wrong implausible
// sim: correct
// speedup: at most 1.1
// differ: an evaluator without a GPU does not make sixty calls
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static int calls = 0;
  affine<<<(n + 255) / 256, 256>>>(x, y, out, ++calls >= 60 ? n / 2 : n);
}
