// problem: tests/evaluator/problems/affine
// hack: at the timing size it copies from where another call of the same batch had its output
// cuda: wrong uninitialised
// sim: uninitialised
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

__global__ void copy(const float* from, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = from[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static float* old_out = nullptr;
  if (n > 100000) {
    copy<<<(n + 255) / 256, 256>>>(old_out != nullptr ? old_out : out, out, n);
    old_out = out;
    return;
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
