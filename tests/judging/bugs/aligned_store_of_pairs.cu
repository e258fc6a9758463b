// problem: tests/evaluator/problems/affine
// bug: results are stored in pairs that begin at odd elements
// finding: misaligned in Affine: writes 8 bytes at an address that is not a multiple of 8, 'out'
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) - 1;
  if (i + 1 >= n) return;
  if (i < 0) {
    out[0] = 2 * x[0] + y[0];
    return;
  }
  *reinterpret_cast<float2*>(out + i) = make_float2(2 * x[i] + y[i], 2 * x[i + 1] + y[i + 1]);  // found
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<(n / 2 + 256) / 256, 256>>>(x, y, out, n);
}
