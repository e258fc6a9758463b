// problem: tests/evaluator/problems/bin_counts
// style: counts in shared memory first: a hundred times as fast as a reference whose time is one of two by its placement
// cuda: correct
// sim: correct
constexpr int kBins = 256;

__global__ void clear_kernel(int* counts) { counts[threadIdx.x] = 0; }

__global__ void count_kernel(const float* x, int* counts, int n) {
  __shared__ int own[kBins];
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) own[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[min((int)(x[i] * kBins), kBins - 1)], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) atomicAdd(&counts[b], own[b]);
}

extern "C" void launch(const float* x, int* counts, int n) {
  clear_kernel<<<1, kBins>>>(counts);
  count_kernel<<<min((n + 511) / 512, 528), 512>>>(x, counts, n);
}
