// problem: problems/level_histogram
// style: a histogram a block in static shared memory with shared atomics, merged by global atomics; memset first
// cuda: correct
// sim: correct
constexpr int kBins = 1024;

__global__ void Count(const int* __restrict__ values, int* counts, int n) {
  __shared__ int local[kBins];
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[values[i]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) {
    if (local[b] != 0) atomicAdd(&counts[b], local[b]);
  }
}

extern "C" void launch(const int* values, int* counts, int n) {
  cudaMemsetAsync(counts, 0, kBins * sizeof(int));
  Count<<<min((n + 1023) / 1024, 264), 512>>>(values, counts, n);
}
