// problem: tests/evaluator/problems/affine
// hack: the first kernel does nearly all of the work evenly, one block of the second the rest
// cuda: correct
// sim: correct
// speedup: at most 0.5
// least: 24 us: 6.3 MB pass through one multiprocessor, at most 128 bytes a cycle of 1.98 GHz
// Computes out[first..last) with the threads of a block.
__device__ void piece(const float* x, const float* y, float* out, int first, int last) {
  for (int i = first + threadIdx.x; i < last; i += blockDim.x) out[i] = 2.0f * x[i] + y[i];
}

__global__ void most(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 2) out[i] = 2.0f * x[i] + y[i];
}

__global__ void rest(const float* x, const float* y, float* out, int n) {
  if (blockIdx.x == 77) piece(x, y, out, n / 2, n);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  most<<<n / 512 + 1, 256>>>(x, y, out, n);
  rest<<<4099, 1024>>>(x, y, out, n);
}
