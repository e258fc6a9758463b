// problem: tests/evaluator/problems/affine
// bug: the guard lets i == n pass
// finding: out_of_bounds in Affine: writes 4 bytes out of bounds, just past the end of 'out' (4000 bytes)
__global__ void Affine(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > n) return;
  const int from = min(i, n - 1);
  out[i] = 2.0f * x[from] + y[from];  // found
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  const int threads = 256;
  Affine<<<(n + threads - 1) / threads, threads>>>(x, y, out, n);
}
