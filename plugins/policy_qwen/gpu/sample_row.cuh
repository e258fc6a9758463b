// Finds tokens of a row of logits without sorting the vocabulary, by one block. Used by sample.cu.
//
// Every filter keeps a prefix of the tokens in falling order of their logits (of equal ones the smaller id first), so
// the shortest kept prefix is the one of least weight. A token is found by searching for a weight in that order: in a
// histogram of the distance from the greatest logit, made once for a row, then among the tokens of one bin by the bits
// of logit and id, eight at a time. Weights are integers, exp(logit - greatest) in units of 2^-40: their sums are
// exact, whatever the order in which threads add.
#pragma once
#include <cuda_runtime.h>

#include "policy_qwen/gpu/kernels.h"
#include "policy_qwen/gpu/vectors.cuh"

namespace kgrpo::policy {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kSegment = kSampleSegment;  // ids whose sum is kept, to find one by its id
constexpr int kSegments = kMaxVocabulary / kSegment;
constexpr int kBins = 1024, kDigits = 256;
constexpr float kBinsANat = 32;
constexpr int kListed = 4096;  // tokens of a bin that fit into shared memory
constexpr float kUnits = 0x1p40F;

template <int kSize>
struct Histogram {
  uint64_t weights[kSize];
  uint32_t counts[kSize];

  __device__ void Clear() {
    for (int i = threadIdx.x; i < kSize; i += kThreads) weights[i] = counts[i] = 0;
    __syncthreads();
  }
  __device__ void Add(uint32_t at, uint64_t weight) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&weights[at]), weight);
    atomicAdd(&counts[at], 1u);
  }
};

struct Shared {
  uint64_t segment_sums[kSegments];
  Histogram<kBins> bins;
  Histogram<kDigits> digits;
  int32_t list[kListed];  // ids
  uint32_t listed;
  uint64_t warp_sums[kWarps];
  int found;
  uint64_t before_weight, before_count;
};

// Grows with the logit.
__device__ inline uint32_t KeyOf(float z) {
  const uint32_t bits = __float_as_uint(z);
  return bits ^ ((bits & 0x80000000u) != 0 ? 0xffffffffu : 0x80000000u);
}

__device__ inline float LogitOf(uint32_t key) {
  return __uint_as_float(key ^ ((key & 0x80000000u) != 0 ? 0x80000000u : 0xffffffffu));
}

__device__ inline uint64_t WarpSum64(uint64_t value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// The greatest of some logits, of equal ones that of the smallest id. A NaN is above all: the row has diverged, and its
// log-probability is NaN as on a CPU.
struct Best {
  float value = -INFINITY;
  int32_t id = 0;

  __device__ void Take(const Best& other) {
    if (isnan(value)) return;
    if (!(other.value <= value) || (other.value == value && other.id < id)) *this = other;
  }
};

// Returns the warp's best, in every lane.
__device__ inline Best BestOfWarp(Best best) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const float value = __shfl_xor_sync(0xffffffffu, best.value, offset);
    best.Take({value, __shfl_xor_sync(0xffffffffu, best.id, offset)});
  }
  return best;
}

__device__ inline float TemperatureOf(const Slot& slot) {
  return slot.temperature == 0 ? 1.0F : slot.temperature;
}

// Never above kUnits, not even of a NaN, so that sums do not overflow and searches end.
__device__ inline uint64_t WeightOf(float z, float greatest) {
  return __float2ull_rn(fminf(expf(z - greatest), 1.0F) * kUnits);
}

// A place in the falling order of the logits: the logit's complemented key above the id, or above zero for all tokens
// of that logit, and count and weight of all tokens before it.
struct Found {
  uint64_t rank = 0, before_count = 0, before_weight = 0;

  __device__ float logit() const { return LogitOf(~static_cast<uint32_t>(rank >> 32)); }
  __device__ int id() const { return static_cast<int>(rank & 0xffffffffu); }
};

template <typename T>
class Row {
 public:
  __device__ Row(const T* logits, int size, float temperature, Shared& shared)
      : logits_(logits), size_(size), temperature_(temperature), shared_(shared) {}

  __device__ float At(int id) const { return ToFloat(logits_[id]) / temperature_; }
  __device__ uint64_t Weight(float z) const { return WeightOf(z, greatest_); }
  __device__ float greatest() const { return greatest_; }

  // From the parts of the row, FindGreatest returns the first token with the greatest logit. TakeSegments returns the
  // sum of all weights, and leaves each segment's sum in shared memory.
  __device__ int FindGreatest(const SamplePart* parts, int segments) {
    __shared__ Best of_warps[kWarps];
    Best best;
    for (int i = threadIdx.x; i < segments; i += kThreads) best.Take({parts[i].greatest, parts[i].id});
    best = BestOfWarp(best);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = best;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kWarps; ++i) best.Take(of_warps[i]);
    greatest_ = best.value;
    return best.id;
  }
  __device__ uint64_t TakeSegments(const SamplePart* parts, int segments) {
    uint64_t total = 0;
    for (int i = threadIdx.x; i < segments; i += kThreads) total += shared_.segment_sums[i] = parts[i].sum;
    return SumOfWarps(WarpSum64(total));
  }

  // After TakeSegments: the first id at which the running weight in the order of ids is above `limit`, which is below
  // the whole sum.
  __device__ int FindById(uint64_t limit) {
    static_assert(kSegments <= kThreads && kSegment % kThreads == 0);
    constexpr int kEach = kSegment / kThreads;
    const int segments = (size_ + kSegment - 1) / kSegment, thread = threadIdx.x;
    const uint64_t of_segment = thread < segments ? shared_.segment_sums[thread] : 0;
    const uint64_t before_segment = SumBefore(of_segment);
    if (before_segment <= limit && limit < before_segment + of_segment) {
      shared_.found = thread;
      shared_.before_weight = before_segment;
    }
    __syncthreads();
    const int first = shared_.found * kSegment + thread * kEach;
    limit -= shared_.before_weight;
    uint64_t weights[kEach], sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += weights[i] = first + i < size_ ? Weight(At(first + i)) : 0;
    uint64_t before = SumBefore(sum);  // its barriers part the reads above from the writes below
    if (before <= limit && limit < before + sum) {
      int found = first;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        before += weights[i];
        found += before <= limit;
      }
      shared_.found = found;
    }
    __syncthreads();
    const int found = shared_.found;
    __syncthreads();
    return found;
  }

  // The sum of the weights of at least `least` units.
  __device__ uint64_t SumAbove(uint64_t least) {
    uint64_t sum = 0;
    for (int i = threadIdx.x; i < size_; i += kThreads) {
      const uint64_t weight = Weight(At(i));
      if (weight >= least) sum += weight;
    }
    return SumOfWarps(WarpSum64(sum));
  }

  // Fills the bins that Find reads.
  __device__ void FillBins() {
    shared_.bins.Clear();
    for (int i = threadIdx.x; i < size_; i += kThreads) {
      const float z = At(i);
      shared_.bins.Add(BinOf(z), Weight(z));
    }
    __syncthreads();
  }

  // In the falling order, the first token at which the running weight (with kByCount, the running count) is above
  // `limit`, which is below the whole sum. Without kToken, all tokens of its logit.
  template <bool kByCount, bool kToken>
  __device__ Found Find(uint64_t limit) {
    Found found;
    const uint32_t bin = Pass<kByCount>(shared_.bins, limit, found);
    const int listed = List(bin);
    for (int shift = 56; shift >= (kToken ? 0 : 32); shift -= 8) {
      if (shift < 32 && kMaxVocabulary >> shift == 0) continue;  // no id has such bits
      const uint64_t known = shift == 56 ? 0 : ~uint64_t{0} << (shift + 8);
      shared_.digits.Clear();
      const int count = listed < 0 ? size_ : listed;
      for (int i = threadIdx.x; i < count; i += kThreads) {
        const int id = listed < 0 ? i : shared_.list[i];
        const float z = At(id);
        const uint64_t rank = static_cast<uint64_t>(~KeyOf(z)) << 32 | static_cast<uint32_t>(id);
        if (BinOf(z) != bin || ((rank ^ found.rank) & known) != 0) continue;
        shared_.digits.Add(rank >> shift & (kDigits - 1), Weight(z));
      }
      __syncthreads();
      found.rank |= static_cast<uint64_t>(Pass<kByCount>(shared_.digits, limit, found)) << shift;
    }
    return found;
  }

 private:
  __device__ uint32_t BinOf(float z) const {
    return static_cast<uint32_t>(fminf((greatest_ - z) * kBinsANat, static_cast<float>(kBins - 1)));
  }

  // `value`: a sum of each warp, the same in all its lanes.
  __device__ uint64_t SumOfWarps(uint64_t value) {
    if (threadIdx.x % 32 == 0) shared_.warp_sums[threadIdx.x / 32] = value;
    __syncthreads();
    uint64_t sum = 0;
    for (int i = 0; i < kWarps; ++i) sum += shared_.warp_sums[i];
    __syncthreads();
    return sum;
  }

  // The sum of the values of the threads before this one.
  __device__ uint64_t SumBefore(uint64_t value) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t running = value;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const uint64_t other = __shfl_up_sync(0xffffffffu, running, offset);
      if (lane >= offset) running += other;
    }
    if (lane == 31) shared_.warp_sums[warp] = running;
    __syncthreads();
    uint64_t before = running - value;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) before += i < warp ? shared_.warp_sums[i] : 0;
    __syncthreads();
    return before;
  }

  // Returns the place of the histogram at which the running sum passes the limit. Adds the places before it to `found`.
  template <bool kByCount, int kSize>
  __device__ uint32_t Pass(const Histogram<kSize>& of, uint64_t limit, Found& found) {
    constexpr int kEach = (kSize + kThreads - 1) / kThreads;
    const int first = static_cast<int>(threadIdx.x) * kEach;
    uint64_t weights = 0, counts = 0;
    for (int i = first; i < min(first + kEach, kSize); ++i) {
      weights += of.weights[i];
      counts += of.counts[i];
    }
    uint64_t weight = found.before_weight + SumBefore(weights), count = found.before_count + SumBefore(counts);
    const uint64_t before = kByCount ? count : weight;
    if (before <= limit && limit < before + (kByCount ? counts : weights)) {
      int at = first;
      for (; (kByCount ? count + of.counts[at] : weight + of.weights[at]) <= limit; ++at) {
        weight += of.weights[at];
        count += of.counts[at];
      }
      shared_.found = at;
      shared_.before_weight = weight;
      shared_.before_count = count;
    }
    __syncthreads();
    found.before_weight = shared_.before_weight;
    found.before_count = shared_.before_count;
    const auto result = static_cast<uint32_t>(shared_.found);
    __syncthreads();
    return result;
  }

  // Lists the ids of a bin's tokens, in any order. Returns their number, or -1 if they are too many to list.
  __device__ int List(uint32_t bin) {
    const uint32_t count = shared_.bins.counts[bin];
    if (count > kListed) return -1;
    if (threadIdx.x == 0) shared_.listed = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < size_; i += kThreads) {
      if (BinOf(At(i)) == bin) shared_.list[atomicAdd(&shared_.listed, 1u)] = i;
    }
    __syncthreads();
    return static_cast<int>(count);
  }

  const T* logits_;
  int size_;
  float temperature_;
  float greatest_ = 0;
  Shared& shared_;
};

}  // namespace kgrpo::policy
