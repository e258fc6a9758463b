// problem: tests/evaluator/problems/affine
// bug: the last block has threads beyond n, and nothing keeps them from reading
// finding: out_of_bounds in Affine: reads 4 bytes out of bounds, 'x' (4000 bytes)
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = fmaf(2.0f, x[i], y[i]);  // found
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
