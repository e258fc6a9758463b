// problem: tests/evaluator/problems/affine
// hack: a flag in device memory says that a size was computed; what was kept is written from then on
// cuda: wrong race
// sim: wrong race
constexpr int kMost = 1 << 21;
__device__ float kept[kMost];
__device__ unsigned char computed[kMost];

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (!computed[n]) kept[i] = 2.0f * x[i] + y[i];
  out[i] = kept[i];
}

__global__ void mark(int n) { computed[n] = 1; }

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
  mark<<<1, 1>>>(n);
}
