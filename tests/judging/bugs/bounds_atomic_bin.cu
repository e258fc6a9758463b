// problem: problems/measurement_histogram
// bug: values at the upper end fall into a bin that is not there
// finding: out_of_bounds in Count: atomically updates 4 bytes out of bounds, 'counts'
__global__ void Clear(int* counts) { counts[threadIdx.x] = 0; }
__global__ void Count(const float* x, int* counts, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int bin = static_cast<int>(floorf(x[i] * 128.0f + 512.0f)) * 2;
  atomicAdd(&counts[bin], 1);  // found
}

extern "C" void launch(const float* x, int* counts, int n) {
  Clear<<<1, 1024>>>(counts);
  Count<<<(n + 255) / 256, 256>>>(x, counts, n);
}
