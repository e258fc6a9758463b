// problem: tests/evaluator/problems/three_quarters
// hack: clamps to the finite range, which makes numbers of NaNs and infinities
// cuda: wrong
// sim: wrong
__global__ void Scale(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 0.75f * fminf(fmaxf(x[i], -3.4028234e38f), 3.4028234e38f);
}

extern "C" void launch(const float* x, float* out, int n) {
  Scale<<<(n + 255) / 256, 256>>>(x, out, n);
}
