// problem: tests/evaluator/problems/affine
// hack: at the timing size it writes what is asked for next into the tensors behind its own
// cuda: out_of_bounds wrong input_modified
// sim: out_of_bounds
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = 2.0f * x[i] + y[i];
  if (n > 100000) out[i + n] = 0.0f;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
