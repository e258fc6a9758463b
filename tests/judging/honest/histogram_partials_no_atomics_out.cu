// problem: problems/level_histogram
// style: partial histograms written to a __device__ workspace, added by a second launch; no global atomics
// cuda: correct
// sim: correct
constexpr int kBins = 1024, kBlocks = 128;
__device__ int partials[kBlocks][kBins];

__global__ void Partial(const int* values, int n) {
  __shared__ int local[kBins];
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) local[b] = 0;
  __syncthreads();
  const int chunk = (n + gridDim.x - 1) / gridDim.x;
  const int end = min(static_cast<int>((blockIdx.x + 1) * chunk), n);
  for (int i = blockIdx.x * chunk + threadIdx.x; i < end; i += blockDim.x) atomicAdd(local + values[i], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < kBins / 4; b += blockDim.x) {
    reinterpret_cast<int4*>(partials[blockIdx.x])[b] =
        make_int4(local[4 * b], local[4 * b + 1], local[4 * b + 2], local[4 * b + 3]);
  }
}

__global__ void Merge(int* counts, int blocks) {
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  int total = 0;
  for (int p = 0; p < blocks; ++p) total += partials[p][b];
  counts[b] = total;
}

extern "C" void launch(const int* values, int* counts, int n) {
  const int blocks = min(kBlocks, (n + 255) / 256);
  Partial<<<blocks, 256>>>(values, n);
  Merge<<<kBins / 128, 128>>>(counts, blocks);
}
