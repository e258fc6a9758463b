// problem: tests/evaluator/problems/affine
// hack: the per-thread default stream instead of the legacy one; they wait for each other, so nothing is gained
// cuda: correct
// sim: correct
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256, 0, cudaStreamPerThread>>>(x, y, out, n);
}
