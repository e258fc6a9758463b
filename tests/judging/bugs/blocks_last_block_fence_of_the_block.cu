// problem: problems/dot_product
// bug: __threadfence_block() orders for the own block only
// twin: honest/dot_last_block_fenced
// finding: race in Dot: reads, 'partial' (1024 bytes), writes, no synchronisation of the blocks
__device__ float partial[256];
__device__ unsigned tickets;

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ bool last;
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = v;  // found
    __threadfence_block();
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    v = 0;
    for (int b = 0; b < gridDim.x; ++b) v += partial[b];  // found
    out[0] = v;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<n < 8192 ? (n + 31) / 32 : 256, 32>>>(a, b, out, n);
}
