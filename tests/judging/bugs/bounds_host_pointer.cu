// problem: tests/evaluator/problems/affine
// bug: the coefficients are an array of the host's, and the kernel gets its address
// finding: out_of_bounds in Affine: reads 4 bytes out of bounds, no device address
__global__ void Affine(const float* x, const float* y, float* out, const float* coefficients, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float a = coefficients[0];  // found
  out[i] = a * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static float coefficients[2] = {2.0f, 1.0f};
  Affine<<<(n + 255) / 256, 256>>>(x, y, out, coefficients, n);
}
