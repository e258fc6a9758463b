// problem: problems/dot_product
// style: the last block to finish joins the partial sums: fence, ticket, barrier
// cuda: correct
// sim: correct
__device__ float partial[256];
__device__ unsigned tickets;

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ bool last;
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = v;
    __threadfence();
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  v = 0;
  for (int b = threadIdx.x; b < gridDim.x; b += 32) v += partial[b];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) out[0] = v;
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<n < 8192 ? (n + 31) / 32 : 256, 32>>>(a, b, out, n);
}
