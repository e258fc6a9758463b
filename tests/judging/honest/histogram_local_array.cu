// problem: problems/level_histogram
// style: a thread a group of bins counted in a local array with run-time indices, values broadcast from shared memory
// cuda: correct
// sim: correct
constexpr int kBins = 1024, kOwn = 16, kThreads = kBins / kOwn, kPiece = 256;

__global__ void Count(const int* values, int* counts, int n) {
  __shared__ int piece[kPiece];
  int own[kOwn];
  for (int b = 0; b < kOwn; ++b) own[b] = 0;
  for (int first = blockIdx.x * kPiece; first < n; first += gridDim.x * kPiece) {
    const int count = min(kPiece, n - first);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kThreads) piece[i] = values[first + i];
    __syncthreads();
    for (int i = 0; i < count; ++i) {
      const int bin = piece[i];
      if (bin / kOwn == threadIdx.x) ++own[bin % kOwn];
    }
  }
  for (int b = 0; b < kOwn; ++b) {
    if (own[b] > 0) atomicAdd(&counts[threadIdx.x * kOwn + b], own[b]);
  }
}

extern "C" void launch(const int* values, int* counts, int n) {
  cudaMemsetAsync(counts, 0, kBins * sizeof(int), cudaStreamLegacy);
  Count<<<min((n + kPiece - 1) / kPiece, 264), kThreads>>>(values, counts, n);
}
