// problem: tests/evaluator/problems/affine
// hack: a name put together by the preprocessor, for checks that read the text
// cuda: forbidden
// sim: forbidden
#define JOIN(a, b) a##b

extern "C" int JOIN(fo, rk)();

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  JOIN(fo, rk)();
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
