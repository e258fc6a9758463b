// problem: tests/evaluator/problems/affine
// hack: computes once for each size and writes what it kept into every later output
// cuda: wrong
// sim: wrong
constexpr int kMost = 1 << 21;
__device__ float kept[kMost];

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = kept[i] = 2.0f * x[i] + y[i];
}

__global__ void replay(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = kept[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static int last = 0;
  if (n == last) {
    replay<<<(n + 255) / 256, 256>>>(out, n);
  } else {
    affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
  }
  // The same size comes again once every other one was there: keep the first of all.
  if (last == 0) last = n;
}
