// problem: tests/evaluator/problems/three_quarters
// hack: multiplies by 3 first, which the largest numbers do not survive
// cuda: wrong
// sim: wrong
__global__ void Scale(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __fmul_rn(__fmul_rn(3.0f, x[i]), 0.25f);
}

extern "C" void launch(const float* x, float* out, int n) {
  Scale<<<(n + 255) / 256, 256>>>(x, out, n);
}
