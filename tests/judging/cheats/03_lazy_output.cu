// problem: tests/evaluator/problems/affine
// hack: each call computes what the call before it asked for
// cuda: wrong out_of_bounds uninitialised
// sim: wrong out_of_bounds uninitialised
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static const float *old_x = nullptr, *old_y = nullptr;
  static float* old_out = nullptr;
  static int old_n = 0;
  if (old_x != nullptr) {
    affine<<<(old_n + 255) / 256, 256>>>(old_x, old_y, old_out, old_n);
  } else {
    affine<<<1, 32>>>(x, y, out, 0);
  }
  old_x = x;
  old_y = y;
  old_out = out;
  old_n = n;
}
