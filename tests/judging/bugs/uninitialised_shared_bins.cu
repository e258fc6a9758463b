// problem: problems/measurement_histogram
// bug: 256 threads clear 256 of the 1024 bins in shared memory
// finding: uninitialised in Count: that no thread of the block has written yet, shared array 'bins' (4096 bytes)
__global__ void Clear(int* counts) { counts[threadIdx.x] = 0; }
__global__ void Count(const float* x, int* counts, int n) {
  __shared__ int bins[1024];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
    const int bin = min(max(static_cast<int>(floorf(x[i] * 128.0f + 512.0f)), 0), 1023);
    atomicAdd(&bins[bin], 1);  // found
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 1024; b += 256) {
    if (bins[b] != 0) atomicAdd(&counts[b], bins[b]);
  }
}

extern "C" void launch(const float* x, int* counts, int n) {
  Clear<<<1, 1024>>>(counts);
  Count<<<4, 256>>>(x, counts, n);
}
