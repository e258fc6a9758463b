// problem: problems/measurement_histogram
// style: bins first noted as 16-bit words by neighbouring threads, read back as packed vectors; shared memory carved by hand
// cuda: correct
// sim: correct
#include <cstdint>

constexpr int kBins = 1024, kThreads = 128;

__global__ void Count(const float* x, int* counts, int n) {
  extern __shared__ __align__(16) unsigned char memory[];
  unsigned* local = reinterpret_cast<unsigned*>(memory);
  unsigned short* bins = reinterpret_cast<unsigned short*>(local + kBins);
  for (int b = threadIdx.x; b < kBins / 4; b += kThreads) reinterpret_cast<uint4*>(local)[b] = make_uint4(0, 0, 0, 0);
  for (int first = blockIdx.x * kThreads; first < n; first += gridDim.x * kThreads) {
    const int i = first + threadIdx.x;
    int bin = 0xffff;
    if (i < n) bin = min(max(__float2int_rd(x[i] * 128.0f + 512.0f), 0), kBins - 1);
    __syncthreads();
    bins[threadIdx.x] = static_cast<unsigned short>(bin);
    __syncthreads();
    // One warp adds for the whole block, four elements a lane.
    if (threadIdx.x < kThreads / 4) {
      const uint2 four = reinterpret_cast<const uint2*>(bins)[threadIdx.x];
      for (unsigned word : {four.x, four.y}) {
        for (int half = 0; half < 2; ++half, word >>= 16) {
          if ((word & 0xffffu) != 0xffffu) atomicAdd(&local[word & 0xffffu], 1u);
        }
      }
    }
  }
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += kThreads) {
    if (local[b] > 0) atomicAdd(reinterpret_cast<unsigned*>(counts) + b, local[b]);
  }
}

extern "C" void launch(const float* x, int* counts, int n) {
  cudaMemsetAsync(counts, 0, kBins * sizeof(int));
  Count<<<min((n + 255) / 256, 264), kThreads, kBins * sizeof(unsigned) + kThreads * sizeof(unsigned short)>>>(
      x, counts, n);
}
