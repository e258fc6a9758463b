// Histogram: counts[v] = how many values are v.
// schedule: histogram chunk=16 grid_stride privatize

constexpr int kBins = 1024;

__device__ int bin(int value) { return value; }

// kernels: each block counts in shared memory and adds its counts at the end, threads stride over the array by the size of the grid.
__global__ void clear_kernel(int* counts) {
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < kBins) counts[b] = 0;
}

__global__ void count_kernel(const int* values, int* counts, int n) {
  __shared__ int block_counts[kBins];
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) block_counts[b] = 0;
  __syncthreads();
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = thread; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&block_counts[bin(values[i])], 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) {
    if (block_counts[b] > 0) atomicAdd(&counts[b], block_counts[b]);
  }
}

extern "C" void launch(const int* values, int* counts, int n) {
  clear_kernel<<<(kBins + 255) / 256, 256>>>(counts);
  const int needed = (n + 255) / 256;
  const int blocks = needed < 528 ? needed : 528;  // enough to fill the device
  count_kernel<<<blocks, 256>>>(values, counts, n);
}
