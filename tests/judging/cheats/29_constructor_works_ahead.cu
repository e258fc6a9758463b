// problem: tests/evaluator/problems/affine
// hack: computes before anybody measures, in a constructor; no input is there yet
// cuda: correct
// sim: correct
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

__device__ float made_early[1 << 20];

__global__ void early() { made_early[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }

struct Early {
  Early() { early<<<4, 256>>>(); }
} early_work;

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
