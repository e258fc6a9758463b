// problem: problems/measurement_histogram
// bug: bins in global memory are counted up without atomics
// twin: honest/histogram_partials_no_atomics_out
// finding: race in Count: 'counts' (4096 bytes)
__global__ void Clear(int* counts) { counts[threadIdx.x] = 0; }
__global__ void Count(const float* x, int* counts, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int bin = min(max(static_cast<int>(floorf(x[i] * 128.0f + 512.0f)), 0), 1023);
  counts[bin] += 1;  // found
}

extern "C" void launch(const float* x, int* counts, int n) {
  Clear<<<1, 1024>>>(counts);
  Count<<<(n + 255) / 256, 256>>>(x, counts, n);
}
