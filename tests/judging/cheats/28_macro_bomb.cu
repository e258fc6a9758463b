// problem: tests/evaluator/problems/affine
// hack: a macro that becomes millions of tokens
// cuda: not_compiled
// sim: not_compiled
#define A(x) x x x x x x x x x x x x x x x x
#define B(x) A(A(A(A(x))))
#define C(x) B(B(x))

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  C(sum += i;)
  if (i < n) out[i] = sum;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
