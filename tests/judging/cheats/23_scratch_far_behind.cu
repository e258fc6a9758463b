// problem: tests/evaluator/problems/affine
// hack: keeps things in lent memory far behind its tensors, beyond the guard zones
// cuda: out_of_bounds
// sim: out_of_bounds
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = 2.0f * x[i] + y[i];
  out[i] = value;
  if (n < 100000) out[(1 << 24) + i] = value;  // where sets lie one behind the other it would be seen
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
