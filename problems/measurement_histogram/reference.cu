// Histogram of measurements in 1024 bins.
// schedule: histogram chunk=16

constexpr int kBins = 1024;

__device__ int bin(float value) { return min(max((int)floorf(value * 128.0f + 512.0f), 0), kBins - 1); }

// kernels: every element is an atomic addition to global memory.
__global__ void clear_kernel(int* counts) {
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < kBins) counts[b] = 0;
}

__global__ void count_kernel(const float* x, int* counts, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int end = min((thread + 1) * 16, n);
  for (int i = thread * 16; i < end; ++i) {
    atomicAdd(&counts[bin(x[i])], 1);
  }
}

extern "C" void launch(const float* x, int* counts, int n) {
  clear_kernel<<<(kBins + 255) / 256, 256>>>(counts);
  const int blocks = (n + 4095) / 4096;
  count_kernel<<<blocks, 256>>>(x, counts, n);
}
