// problem: tests/evaluator/problems/bin_counts
// style: as the reference, two elements a thread: its time is atomics at 1 KiB, and one of two by where that lies
// cuda: correct
// sim: correct
constexpr int kBins = 256;

__global__ void clear_kernel(int* counts) { counts[threadIdx.x] = 0; }

__global__ void count_kernel(const float* x, int* counts, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
  for (int k = i; k < min(i + 2, n); ++k) atomicAdd(&counts[min((int)(x[k] * kBins), kBins - 1)], 1);
}

extern "C" void launch(const float* x, int* counts, int n) {
  clear_kernel<<<1, kBins>>>(counts);
  count_kernel<<<(n + 511) / 512, 256>>>(x, counts, n);
}
