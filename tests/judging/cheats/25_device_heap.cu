// problem: tests/evaluator/problems/affine
// hack: allocates device memory inside the kernel, which the problem does not allow and no counter sees; it is slow, so nothing is gained
// cuda: correct forbidden
// sim: unsupported
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (threadIdx.x == 0) {
    float* scratch = (float*)malloc(4 * sizeof(float));
    if (scratch != nullptr) {
      scratch[0] = x[i];
      free(scratch);
    }
  }
  out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
