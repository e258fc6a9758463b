// problem: tests/evaluator/problems/affine
// hack: launches nothing but a stub where it has seen these pointers before
// cuda: wrong
// sim: wrong
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static const void* seen[4096][3];
  static int count = 0;
  for (int i = 0; i < count; ++i) {
    if (seen[i][0] == x && seen[i][1] == y && seen[i][2] == out) {
      affine<<<1, 1>>>(x, y, out, 1);
      return;
    }
  }
  if (count < 4096) {
    seen[count][0] = x;
    seen[count][1] = y;
    seen[count++][2] = out;
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
