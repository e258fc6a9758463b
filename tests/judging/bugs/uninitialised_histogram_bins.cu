// problem: problems/measurement_histogram
// bug: the bins are counted up without having been cleared
// finding: uninitialised in Count: reads 4 bytes that nothing has written, 'counts' (4096 bytes)
__global__ void Count(const float* x, int* counts, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const int bin = min(max(static_cast<int>(floorf(x[i] * 128.0f + 512.0f)), 0), 1023);
    atomicAdd(counts + bin, 1);  // found
  }
}

extern "C" void launch(const float* x, int* counts, int n) { Count<<<16, 128>>>(x, counts, n); }
