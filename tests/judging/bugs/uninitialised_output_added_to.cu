// problem: tests/evaluator/problems/affine
// bug: the output is added to, as if it began with zeros
// finding: uninitialised in Affine: reads 4 bytes that nothing has written, 'out' (4000 bytes)
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += 2.0f * x[i] + y[i];  // found
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
