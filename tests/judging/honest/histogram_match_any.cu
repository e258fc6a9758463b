// problem: problems/level_histogram
// style: equal values of a warp found by __match_any_sync; their first lane adds for all; int4 loads
// cuda: correct
// sim: correct
#include <cstdint>

constexpr int kBins = 1024;

__device__ void AddMatched(int* counts, int value) {
  // -1 stands for no value; all lanes of the warp come here.
  const unsigned same = __match_any_sync(0xffffffffu, value);
  const int lane = threadIdx.x & 31;
  if (value >= 0 && lane == __ffs(same) - 1) atomicAdd(&counts[value], __popc(same));
}

__global__ void Count(const int* values, int* counts, int n, bool aligned) {
  const int vectors = aligned ? n / 4 : 0;
  const int threads = gridDim.x * blockDim.x;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int base = thread - (threadIdx.x & 31); base < vectors; base += threads) {
    const int i = base + (threadIdx.x & 31);
    const int4 v = i < vectors ? reinterpret_cast<const int4*>(values)[i] : make_int4(-1, -1, -1, -1);
    AddMatched(counts, v.x);
    AddMatched(counts, v.y);
    AddMatched(counts, v.z);
    AddMatched(counts, v.w);
  }
  for (int i = 4 * vectors + thread; i < n; i += threads) atomicAdd(&counts[values[i]], 1);
}

extern "C" void launch(const int* values, int* counts, int n) {
  cudaMemsetAsync(counts, 0, kBins * sizeof(int));
  const bool aligned = reinterpret_cast<std::uintptr_t>(values) % sizeof(int4) == 0;
  Count<<<min((n + 1023) / 1024, 528), 256>>>(values, counts, n, aligned);
}
