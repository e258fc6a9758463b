// problem: tests/evaluator/problems/affine
// bug: n - 1001 - i is computed without a sign and wraps around to four billion: a place far from everything
// finding: out_of_bounds in Reversed: reads 4 bytes out of bounds
__global__ void Reversed(const float* x, const float* y, float* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned from = n - 1001u - i;
  out[i] = 2.0f * x[from] + y[i];  // found
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Reversed<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
