// problem: tests/evaluator/problems/affine
// style: as many blocks as fit at once, which take the next piece by an atomic until there is none
// cuda: correct
// sim: correct
// most: 24 us: twice what the same work takes spread evenly by the block's number
// Computes out[first..last) with the threads of a block.
__device__ void piece(const float* x, const float* y, float* out, int first, int last) {
  for (int i = first + threadIdx.x; i < last; i += blockDim.x) out[i] = 2.0f * x[i] + y[i];
}

__device__ int next, ended;

__global__ void affine(const float* x, const float* y, float* out, int n) {
  __shared__ int taken;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) taken = atomicAdd(&next, 1);
    __syncthreads();
    const int first = taken * 1024;
    if (first >= n) break;
    piece(x, y, out, first, first + 1024 < n ? first + 1024 : n);
  }
  // The last to end leaves all as it was.
  if (threadIdx.x == 0 && atomicAdd(&ended, 1) == gridDim.x - 1) next = ended = 0;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) { affine<<<1056, 256>>>(x, y, out, n); }
