// problem: tests/evaluator/problems/affine
// hack: the odd blocks take their elements 32 apart, by a choice of the index without a branch
// cuda: correct
// sim: correct
// speedup: at most 1.1
// least: 6 us: half of 98,304 requests touch 32 lines each: 1.57 million cycles of 132 L1 caches at 1.98 GHz
__global__ void affine(const float* x, const float* y, float* out, int n) {
  const int t = threadIdx.x, across = t % 32 * 32 + t / 32;
  const int i = blockIdx.x * 1024 + (blockIdx.x % 2 != 0 ? across : t);
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) { affine<<<(n + 1023) / 1024, 1024>>>(x, y, out, n); }
