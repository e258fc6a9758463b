// problem: tests/evaluator/problems/affine
// hack: each 512th block does the work of 512
// cuda: correct
// sim: correct
// speedup: at most 0.9
// least: 6.2 us: an eighth of 12.6 MB passes through one multiprocessor, at most 128 bytes a cycle of 1.98 GHz
// Computes out[first..last) with the threads of a block.
__device__ void piece(const float* x, const float* y, float* out, int first, int last) {
  for (int i = first + threadIdx.x; i < last; i += blockDim.x) out[i] = 2.0f * x[i] + y[i];
}

__global__ void affine(const float* x, const float* y, float* out, int n) {
  if (blockIdx.x % 512 != 3) return;
  const int each = (n + 7) / 8, first = blockIdx.x / 512 * each;
  piece(x, y, out, first, first + each < n ? first + each : n);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) { affine<<<4096, 256>>>(x, y, out, n); }
