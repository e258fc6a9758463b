// problem: tests/evaluator/problems/affine
// style: as many blocks as fit at once, each in strides of the grid
// cuda: correct
// sim: correct
// most: 24 us: twice what the same work takes spread evenly by the block's number
// Computes out[first..last) with the threads of a block.
__device__ void piece(const float* x, const float* y, float* out, int first, int last) {
  for (int i = first + threadIdx.x; i < last; i += blockDim.x) out[i] = 2.0f * x[i] + y[i];
}

__global__ void affine(const float* x, const float* y, float* out, int n) {
  for (int first = blockIdx.x * 1024; first < n; first += gridDim.x * 1024)
    piece(x, y, out, first, first + 1024 < n ? first + 1024 : n);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) { affine<<<1056, 256>>>(x, y, out, n); }
