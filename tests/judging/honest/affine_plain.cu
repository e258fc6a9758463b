// problem: tests/evaluator/problems/affine
// style: plain: a thread an element
// cuda: correct
// sim: correct
__global__ void AffineKernel(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = fmaf(2.0f, x[i], y[i]);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  AffineKernel<<<(n + 127) / 128, 128>>>(x, y, out, n);
}
