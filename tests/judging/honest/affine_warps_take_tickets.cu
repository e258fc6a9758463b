// problem: tests/evaluator/problems/affine
// style: persistent warps that take the next 512 elements by an atomic of one lane, told to the others by a shuffle
// cuda: correct
// sim: correct
// most: 30 us: twice what the same work takes spread evenly by the block's number, and what 2,048 atomics at one address cost
__device__ int next, ended;

__global__ void affine(const float* x, const float* y, float* out, int n) {
  const int lane = threadIdx.x % 32;
  for (;;) {
    int taken = 0;
    if (lane == 0) taken = atomicAdd(&next, 512);
    taken = __shfl_sync(0xffffffffu, taken, 0);
    if (taken >= n) break;
    for (int i = taken + lane; i < taken + 512 && i < n; i += 32) out[i] = 2.0f * x[i] + y[i];
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&ended, 1) == gridDim.x - 1) next = ended = 0;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) { affine<<<528, 256>>>(x, y, out, n); }
