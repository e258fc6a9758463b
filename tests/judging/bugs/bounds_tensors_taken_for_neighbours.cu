// problem: tests/evaluator/problems/affine
// bug: y is read as x + n, as if the two lay one behind the other
// finding: out_of_bounds in Affine: reads 4 bytes out of bounds, 'x' (4000 bytes)
__global__ void Affine(const float* inputs, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float scale = inputs[i];
    out[i] = 2.0f * scale + inputs[n + i];  // found
  }
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<(n + 255) / 256, 256>>>(x, out, n);
}
