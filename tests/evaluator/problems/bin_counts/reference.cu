// Every element is an atomic addition to one of 256 counters: 1 KiB, which one or two slices of the L2 serve, by where it
// lies.
constexpr int kBins = 256;

__global__ void clear_kernel(int* counts) { counts[threadIdx.x] = 0; }

__global__ void count_kernel(const float* x, int* counts, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[min((int)(x[i] * kBins), kBins - 1)], 1);
}

extern "C" void launch(const float* x, int* counts, int n) {
  clear_kernel<<<1, kBins>>>(counts);
  count_kernel<<<(n + 255) / 256, 256>>>(x, counts, n);
}
