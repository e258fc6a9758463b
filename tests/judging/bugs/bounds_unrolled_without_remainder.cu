// problem: tests/evaluator/problems/affine
// bug: each thread does four elements a block's width apart, but only the first is checked against n
// finding: out_of_bounds in Affine: reads 4 bytes out of bounds, 'x' (4000 bytes)
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int first = blockIdx.x * blockDim.x * 4 + threadIdx.x;
  if (first >= n) return;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int i = first + k * blockDim.x;
    out[i] = 2.0f * x[i] + y[i];  // found
  }
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<(n + 4 * 128 - 1) / (4 * 128), 128>>>(x, y, out, n);
}
