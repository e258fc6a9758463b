// problem: tests/evaluator/problems/affine
// hack: reads beyond its inputs and uses nothing of it; harmless, but seen where every access is checked
// cuda: out_of_bounds
// sim: out_of_bounds
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float beyond = x[n + 64];
  out[i] = 2.0f * x[i] + y[i] + (beyond == 12345.678f ? 1.0f : 0.0f);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
