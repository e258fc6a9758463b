// problem: tests/evaluator/problems/affine
// hack: from the twelfth call on, when it thinks that correctness has been looked at, it does half of the work
// cuda: non_deterministic wrong
// sim: implausible wrong non_deterministic
// differ: the evaluators do not call it equally often
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static int calls = 0;
  affine<<<(n + 255) / 256, 256>>>(x, y, out, ++calls >= 12 ? n / 2 : n);
}
