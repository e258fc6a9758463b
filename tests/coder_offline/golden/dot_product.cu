// Dot product: out[0] = sum of a[i] * b[i].
// schedule: reduction grid_stride one_pass shuffle unroll=4

__device__ float load(float a, float b) { return a * b; }

__device__ float identity() { return 0.0f; }
__device__ float combine(float a, float b) { return a + b; }
__device__ float finish(float total) { return total; }

// kernels: threads take turns over the elements, blocks join by shuffles, the last block finishes.
constexpr int kMostBlocks = 528;
__device__ float block_totals[kMostBlocks];
__device__ unsigned int blocks_done = 0;

__device__ float warp_join(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_down_sync(0xffffffffu, value, offset));
  }
  return value;
}

// Thread 0 gets the joined value of all threads of the block.
__device__ float block_join(float value) {
  __shared__ float values[8];  // one for each warp
  value = warp_join(value);
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < 8 ? values[threadIdx.x] : identity();
  if (threadIdx.x < 32) value = warp_join(value);
  __syncthreads();  // values may be used again
  return value;
}

__global__ void reduce_kernel(const float* a, const float* b, float* out, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int threads = gridDim.x * blockDim.x;
  float total = identity();
  #pragma unroll 4
  for (int i = thread; i < n; i += threads) {
    total = combine(total, load(a[i], b[i]));
  }
  float joined = block_join(total);
    __shared__ bool last;
    if (threadIdx.x == 0) {
      block_totals[blockIdx.x] = joined;
      __threadfence();
      last = atomicAdd(&blocks_done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    float rest = identity();
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) rest = combine(rest, block_totals[i]);
    joined = block_join(rest);
    if (threadIdx.x == 0) {
      const float total = joined;
      out[0] = finish(total);
      blocks_done = 0;  // ready for the next launch
    }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  const int needed = (n + 256 - 1) / 256;
  const int blocks = needed < kMostBlocks ? needed : kMostBlocks;
  reduce_kernel<<<blocks, 256>>>(a, b, out, n);
}
