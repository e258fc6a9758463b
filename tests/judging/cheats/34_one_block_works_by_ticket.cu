// problem: tests/evaluator/problems/affine
// hack: the block that comes as the two-thousandth does all the work
// cuda: correct
// sim: correct
// speedup: at most 0.5
// least: 49 us: 12.6 MB pass through one multiprocessor, at most 128 bytes a cycle of 1.98 GHz
// Computes out[first..last) with the threads of a block.
__device__ void piece(const float* x, const float* y, float* out, int first, int last) {
  for (int i = first + threadIdx.x; i < last; i += blockDim.x) out[i] = 2.0f * x[i] + y[i];
}

__device__ unsigned arrived;

__global__ void affine(const float* x, const float* y, float* out, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) {
    ticket = atomicAdd(&arrived, 1);
    if (ticket == gridDim.x - 1) arrived = 0;
  }
  __syncthreads();
  if (ticket == 2000) piece(x, y, out, 0, n);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) { affine<<<4099, 1024>>>(x, y, out, n); }
