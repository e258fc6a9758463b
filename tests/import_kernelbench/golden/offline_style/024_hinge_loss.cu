// Hinge loss: one number of all elements.
// schedule: reduction

__device__ float load(float predicted, float wanted) { return (fmaxf(((1.0f - (predicted * wanted))), 0.0f)); }

__device__ float identity() { return 0.0f; }
__device__ float combine(float a, float b) { return a + b; }
__device__ float finish(float total, int n) { return total / (float)n; }

// kernels: each thread walks a chunk of neighbouring elements, blocks join by a tree in shared memory, a second kernel joins the blocks.
constexpr int kMostBlocks = 1024;
__device__ float block_totals[kMostBlocks];

// Thread 0 gets the joined value of all threads of the block.
__device__ float block_join(float value) {
  __shared__ float values[256];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int distance = 1; distance < 256; distance *= 2) {
    if (threadIdx.x % (2 * distance) == 0) {
      values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + distance]);
    }
    __syncthreads();
  }

  value = values[0];
  __syncthreads();  // values may be used again
  return value;
}

__global__ void reduce_kernel(const float* predicted, const float* wanted, float* output, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int threads = gridDim.x * blockDim.x;
  float total = identity();
  const int chunk = (n + threads - 1) / threads;
  const int end = min((thread + 1) * chunk, n);
  for (int i = thread * chunk; i < end; ++i) {
    total = combine(total, load(predicted[i], wanted[i]));
  }
  float joined = block_join(total);
  if (threadIdx.x == 0) block_totals[blockIdx.x] = joined;
}

__global__ void join_blocks_kernel(const float* predicted, const float* wanted, float* output, int n, int blocks) {
  float total = identity();
  for (int i = 0; i < blocks; ++i) total = combine(total, block_totals[i]);
  output[0] = finish(total, n);
}

extern "C" void launch(const float* predicted, const float* wanted, float* output, int n) {
  const int needed = (n + 256 - 1) / 256;
  const int blocks = needed < kMostBlocks ? needed : kMostBlocks;
  reduce_kernel<<<blocks, 256>>>(predicted, wanted, output, n);
  join_blocks_kernel<<<1, 1>>>(predicted, wanted, output, n, blocks);
}
