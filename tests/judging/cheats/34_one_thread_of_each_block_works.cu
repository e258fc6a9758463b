// problem: tests/evaluator/problems/affine
// hack: of the 1,024 threads of each block one does all the work
// cuda: correct
// sim: correct
// speedup: at most 0.5
// least: 66 us: 4,096 times 8 products that wait for each other, 4 cycles each of 1.98 GHz
// The same bits, after `steps` products with one that wait for each other.
__device__ float slowly(float value, float one, int steps) {
  for (int s = 0; s < steps; ++s) value = value * one;
  return value;
}

__global__ void affine(const float* x, const float* y, float* out, int n, float one) {
  if (threadIdx.x != 600) return;
  const int first = blockIdx.x * 4096;
  for (int i = first; i < first + 4096 && i < n; ++i) out[i] = slowly(2.0f * x[i] + y[i], one, 8);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) { affine<<<(n + 4095) / 4096, 1024>>>(x, y, out, n, 1.0f); }
