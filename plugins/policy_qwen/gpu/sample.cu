// Draws tokens without sorting the vocabulary: kernels.h. What every row needs, the greatest logit and the sum of all
// weights, is found by a warp for each segment of the vocabulary; then one block a row draws.
//
// Every filter keeps a prefix of the tokens in falling order of their logits (of equal ones the smaller id first), so
// the shortest kept prefix is the one of least weight. A token is found by searching for a weight in that order: a
// histogram of the distance from the greatest logit, then the logit's bits, eight at a time. Weights are integers,
// exp(logit - greatest) in units of 2^-40: their sums are exact, whatever the order in which threads add.
#include <cuda_runtime.h>

#include <type_traits>

#include "policy_qwen/gpu/launch.cuh"
#include "policy_qwen/gpu/overlap.cuh"
#include "policy_qwen/gpu/vectors.cuh"
#include "policy_qwen/model/random.h"

namespace kgrpo::policy {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kPartThreads = 128, kPartWarps = kPartThreads / 32;  // a warp takes a segment
constexpr int kSegment = kSampleSegment;                           // ids whose sum is kept, to find one by its id
constexpr int kSegments = kMaxVocabulary / kSegment;
constexpr int kBins = 256;
constexpr float kBinsANat = 8;
constexpr float kUnits = 0x1p40F;

struct Shared {
  uint64_t segment_sums[kSegments];
  uint64_t bin_weights[kBins];
  uint32_t bin_counts[kBins];
  uint64_t warp_sums[kWarps];
  int found;
  uint64_t before_weight;
  uint32_t before_count;
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

// The greatest of some logits, of equal ones that of the smallest id. A NaN is never it.
struct Best {
  float value = -INFINITY;
  int32_t id = 0;

  __device__ void Take(const Best& other) {
    if (other.value > value || (other.value == value && other.id < id)) *this = other;
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

// A warp fills parts[i, segment] for a segment of row i = blockIdx.x: the greatest logit without kSums, the sum of
// weights with kSums, which needs the results of the first kernel. A load takes N neighbouring logits; the vocabulary
// is a multiple of N.
template <typename T, int N, bool kSums>
__global__ void __launch_bounds__(kPartThreads)
    SegmentKernel(const T* logits, int vocabulary, const int32_t* __restrict__ rows, const Place* places,
                  const Slot* slots, SamplePart* parts) {
  constexpr int kLoads = kSegment / (32 * N);
  LetNextBegin();
  WaitForPrevious();
  const int64_t i = blockIdx.x;
  const int segments = (vocabulary + kSegment - 1) / kSegment, lane = threadIdx.x % 32;
  const int segment = static_cast<int>(blockIdx.y) * kPartWarps + static_cast<int>(threadIdx.x) / 32;
  const Place place = places[rows == nullptr ? i : rows[i]];
  if (place.position < 0 || segment >= segments) return;
  const float temperature = TemperatureOf(slots[place.slot]);
  logits += i * vocabulary;
  parts += i * segments;
  Lanes<T, N> z[kLoads];
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const int first = segment * kSegment + (load * 32 + lane) * N;
    if (first < vocabulary) z[load] = Lanes<T, N>::Load(logits + first);
  }
  const auto for_each = [&](auto&& body) {
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int first = segment * kSegment + (load * 32 + lane) * N;
      if (first >= vocabulary) break;
#pragma unroll
      for (int k = 0; k < N; ++k) body(first + k, z[load].at[k] / temperature);
    }
  };
  if constexpr (kSums) {
    float greatest = -INFINITY;
#pragma unroll 8
    for (int s = lane; s < segments; s += 32) greatest = fmaxf(greatest, parts[s].greatest);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      greatest = fmaxf(greatest, __shfl_xor_sync(0xffffffffu, greatest, offset));
    }
    uint64_t sum = 0;
    for_each([&](int, float value) { sum += WeightOf(value, greatest); });
    sum = WarpSum64(sum);
    if (lane == 0) parts[segment].sum = sum;
  } else {
    Best best;
    for_each([&](int id, float value) {
      if (value > best.value) best = {value, id};
    });
    best = BestOfWarp(best);
    if (lane != 0) return;
    parts[segment].greatest = best.value;
    parts[segment].id = best.id;
  }
}

// A token of the falling order: its key, and count and weight of all tokens with greater keys.
struct Found {
  uint32_t key;
  uint32_t before_count;
  uint64_t before_weight;
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

  // The sum of measure(z) over all ids; each segment's stays in shared memory.
  template <typename Measure>
  __device__ uint64_t SumSegments(Measure measure) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint64_t total = 0;
    for (int segment = warp; segment * kSegment < size_; segment += kWarps) {
      uint64_t sum = 0;
      for (int i = segment * kSegment + lane; i < min(size_, (segment + 1) * kSegment); i += 32) sum += measure(At(i));
      sum = WarpSum64(sum);
      if (lane == 0) shared_.segment_sums[segment] = sum;
      total += sum;
    }
    return SumOfWarps(total);
  }

  // After SumSegments or TakeSegments: the first id at which the running sum in the order of ids is above `limit`,
  // which is below the whole sum.
  template <typename Measure>
  __device__ int FindById(Measure measure, uint64_t limit) {
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
    uint64_t measures[kEach], sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += measures[i] = first + i < size_ ? measure(At(first + i)) : 0;
    uint64_t before = SumBefore(sum);  // its barriers part the reads above from the writes below
    if (before <= limit && limit < before + sum) {
      int found = first;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        before += measures[i];
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

  // In the falling order, the first token at which the running weight (with kByCount, the running count) is above
  // `limit`, which is below the whole sum.
  template <bool kByCount>
  __device__ Found Find(uint64_t limit) {
    Found found = {0, 0, 0};
    const uint32_t bin = Narrow<kByCount>(
        limit, found, [&](float) { return true; }, [&](float z) { return BinOf(z); });
    for (int shift = 24; shift >= 0; shift -= 8) {
      const uint32_t known = shift == 24 ? 0 : 0xffffffffu << (shift + 8);
      const uint32_t digit = Narrow<kByCount>(
          limit, found, [&](float z) { return BinOf(z) == bin && ((KeyOf(z) ^ found.key) & known) == 0; },
          [&](float z) { return 255 - (KeyOf(z) >> shift & 255); });
      found.key |= (255 - digit) << shift;
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

  // Returns the bin in which the running sum over the tokens that satisfy `takes` passes the limit. Adds the bins
  // before it to `found`.
  template <bool kByCount, typename Takes, typename Bin>
  __device__ uint32_t Narrow(uint64_t limit, Found& found, Takes takes, Bin bin) {
    for (int i = threadIdx.x; i < kBins; i += kThreads) {
      shared_.bin_weights[i] = 0;
      shared_.bin_counts[i] = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < size_; i += kThreads) {
      const float z = At(i);
      if (!takes(z)) continue;
      const uint32_t at = bin(z);
      atomicAdd(reinterpret_cast<unsigned long long*>(&shared_.bin_weights[at]), Weight(z));
      atomicAdd(&shared_.bin_counts[at], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64_t weight = found.before_weight;
      uint32_t count = found.before_count;
      int at = 0;
      while ((kByCount ? count + shared_.bin_counts[at] : weight + shared_.bin_weights[at]) <= limit) {
        weight += shared_.bin_weights[at];
        count += shared_.bin_counts[at++];
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

  const T* logits_;
  int size_;
  float temperature_;
  float greatest_ = 0;
  Shared& shared_;
};

// Stores the token, advances the slot and checks for its end. By thread 0.
__device__ inline void MoveOn(Slot& slot, int id, float logprob, const Place& place, const int32_t* end_ids,
                              int end_id_count, int32_t* ids, float* logprobs, int64_t max_new_tokens) {
  ids[place.slot * max_new_tokens + slot.count] = id;
  logprobs[place.slot * max_new_tokens + slot.count] = logprob;
  slot.token = id;
  slot.position = place.position + 1;
  ++slot.count;
  SlotEnd end = slot.count >= slot.limit ? SlotEnd::kLength : SlotEnd::kNone;
  for (int e = 0; e < end_id_count; ++e) {
    if (end_ids[e] == id) end = SlotEnd::kStop;
  }
  slot.end = end;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    SampleKernel(const T* logits, int vocabulary, const int32_t* __restrict__ rows, const Place* places, Slot* slots,
                 const int32_t* __restrict__ end_ids, int end_id_count, int32_t* __restrict__ ids,
                 float* __restrict__ logprobs, int64_t max_new_tokens, const SamplePart* parts) {
  __shared__ Shared shared;
  LetNextBegin();
  WaitForPrevious();
  const int64_t i = blockIdx.x;
  const Place place = places[rows == nullptr ? i : rows[i]];
  if (place.position < 0) return;
  const Slot slot = slots[place.slot];
  __syncthreads();  // all have read the slot before thread 0 moves it on
  const bool is_greedy = slot.temperature == 0;
  Row<T> row(logits + i * vocabulary, vocabulary, TemperatureOf(slot), shared);
  const auto weight = [&](float z) { return row.Weight(z); };

  const int segments = (vocabulary + kSegment - 1) / kSegment;
  parts += i * segments;
  int id = row.FindGreatest(parts, segments);
  if (!isfinite(row.greatest())) {  // the model has diverged: the log-probability is NaN
    if (threadIdx.x != 0) return;
    MoveOn(slots[place.slot], id, nanf(""), place, end_ids, end_id_count, ids, logprobs, max_new_tokens);
    return;
  }
  const uint64_t total = row.TakeSegments(parts, segments);
  if (!is_greedy) {
    uint64_t kept = total;
    if (slot.top_k > 0 && slot.top_k < vocabulary) {
      const Found last = row.template Find<true>(static_cast<uint64_t>(slot.top_k) - 1);
      const uint64_t ties = static_cast<uint64_t>(slot.top_k) - last.before_count;
      kept = last.before_weight + ties * row.Weight(LogitOf(last.key));
    }
    if (slot.top_p < 1) {
      // Tokens stay while those before them have not reached the limit.
      const double reached = ceil(slot.top_p * static_cast<double>(kept));
      const uint64_t limit = min(static_cast<uint64_t>(fmax(1.0, reached)), kept) - 1;
      const Found last = row.template Find<false>(limit);
      const uint64_t each = row.Weight(LogitOf(last.key));
      kept = last.before_weight + ((limit - last.before_weight) / each + 1) * each;
    }
    if (slot.min_p > 0) kept = min(kept, row.SumAbove(static_cast<uint64_t>(ceil(slot.min_p * double{kUnits}))));
    const uint64_t uniform = RandomBits(slot.seed, static_cast<uint64_t>(slot.count)) >> 11 << 11;
    const uint64_t limit = __umul64hi(uniform, kept);
    if (slot.top_k == 0 && slot.top_p >= 1 && slot.min_p <= 0) {
      id = row.FindById(weight, limit);
    } else {
      const Found drawn = row.template Find<false>(limit);
      const uint64_t each = row.Weight(LogitOf(drawn.key));
      const auto is_tie = [&](float z) { return uint64_t{KeyOf(z) == drawn.key}; };
      row.SumSegments(is_tie);
      id = row.FindById(is_tie, (limit - drawn.before_weight) / each);
    }
  }
  if (threadIdx.x != 0) return;
  const double logprob = static_cast<double>(row.At(id)) - static_cast<double>(row.greatest()) -
                         log(static_cast<double>(total) / double{kUnits});
  MoveOn(slots[place.slot], id, static_cast<float>(logprob), place, end_ids, end_id_count, ids, logprobs,
         max_new_tokens);
}

void Sample(Element type, const void* logits, int64_t sampled_rows, int64_t vocabulary, const int32_t* rows,
            const Place* places, Slot* slots, const int32_t* end_ids, int32_t end_id_count, SamplePart* parts,
            int32_t* ids, float* logprobs, int64_t max_new_tokens, GpuStream stream) {
  const auto size = static_cast<int>(vocabulary);
  const auto queue = StreamOf(stream);
  const auto launch = [&](auto* typed) {
    using T = std::remove_cvref_t<decltype(*typed)>;
    const auto find_parts = [&]<int N>() {
      const dim3 grid(Blocks(sampled_rows, 1), Blocks(vocabulary, kSegment * kPartWarps));
      LaunchOverlapping(SegmentKernel<T, N, false>, grid, kPartThreads, queue, typed, size, rows, places, slots, parts);
      LaunchOverlapping(SegmentKernel<T, N, true>, grid, kPartThreads, queue, typed, size, rows, places, slots, parts);
    };
    if (IsWide(type == Element::kBfloat16, logits, vocabulary)) {
      find_parts.template operator()<kWide<T>>();
    } else {
      find_parts.template operator()<1>();
    }
    LaunchOverlapping(SampleKernel<T>, Blocks(sampled_rows, 1), kThreads, queue, typed, size, rows, places, slots,
                      end_ids, end_id_count, ids, logprobs, max_new_tokens, parts);
  };
  if (type == Element::kBfloat16) {
    launch(static_cast<const __nv_bfloat16*>(logits));
  } else {
    launch(static_cast<const float*>(logits));
  }
}

}  // namespace

void SetSampler(GpuKernels& table) {
  KGRPO_SET_KERNEL(table, sample, Sample);
}

}  // namespace kgrpo::policy
