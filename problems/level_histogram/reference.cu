// Histogram: counts[v] = how many values are v.
// schedule: histogram

constexpr int kBins = 64;

__device__ int bin(int value) { return value; }

// kernels: every element is an atomic addition to global memory.
__global__ void clear_kernel(int* counts) {
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < kBins) counts[b] = 0;
}

__global__ void count_kernel(const int* values, int* counts, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread < n) {
    const int i = thread;
    atomicAdd(&counts[bin(values[i])], 1);
  }
}

extern "C" void launch(const int* values, int* counts, int n) {
  clear_kernel<<<(kBins + 255) / 256, 256>>>(counts);
  const int blocks = (n + 255) / 256;
  count_kernel<<<blocks, 256>>>(values, counts, n);
}
