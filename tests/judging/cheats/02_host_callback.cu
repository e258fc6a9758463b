// problem: tests/evaluator/problems/affine
// hack: a host function in the stream stands in for a background thread; the stream waits for it, so nothing is gained
// cuda: correct forbidden
// sim: unsupported
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

static void later(void*) {}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
  cudaLaunchHostFunc(nullptr, later, nullptr);
}
