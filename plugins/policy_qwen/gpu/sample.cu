// Draws tokens: kernels.h. What every row needs, the greatest logit and the sum of all weights, is found by a warp for
// each segment of the vocabulary; then one block a row draws (sample_row.cuh).
#include <cuda_runtime.h>

#include "policy_qwen/gpu/launch.cuh"
#include "policy_qwen/gpu/overlap.cuh"
#include "policy_qwen/gpu/sample_row.cuh"
#include "policy_qwen/model/random.h"

namespace kgrpo::policy {
namespace {

constexpr int kPartThreads = 128, kPartWarps = kPartThreads / 32;  // a warp takes a segment

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
    const bool by_id = slot.top_k == 0 && slot.top_p >= 1 && slot.min_p <= 0;
    if (!by_id) row.FillBins();
    uint64_t kept = total;
    if (slot.top_k > 0 && slot.top_k < vocabulary) {
      const Found last = row.template Find<true, false>(static_cast<uint64_t>(slot.top_k) - 1);
      const uint64_t ties = static_cast<uint64_t>(slot.top_k) - last.before_count;
      kept = last.before_weight + ties * row.Weight(last.logit());
    }
    if (slot.top_p < 1) {
      // Tokens stay while those before them have not reached the limit.
      const double reached = ceil(slot.top_p * static_cast<double>(kept));
      const uint64_t limit = min(static_cast<uint64_t>(fmax(1.0, reached)), kept) - 1;
      const Found last = row.template Find<false, false>(limit);
      const uint64_t each = row.Weight(last.logit());
      kept = last.before_weight + ((limit - last.before_weight) / each + 1) * each;
    }
    if (slot.min_p > 0) kept = min(kept, row.SumAbove(static_cast<uint64_t>(ceil(slot.min_p * double{kUnits}))));
    const uint64_t uniform = RandomBits(slot.seed, static_cast<uint64_t>(slot.count)) >> 11 << 11;
    const uint64_t limit = __umul64hi(uniform, kept);
    id = by_id ? row.FindById(limit) : row.template Find<false, true>(limit).id();
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
  const dim3 grid(Blocks(sampled_rows, 1), Blocks(vocabulary, kSegment * kPartWarps));
  ForLanes(type, IsWide(type, logits, vocabulary), [&]<typename T, int N>() {
    const auto* const typed = static_cast<const T*>(logits);
    LaunchOverlapping(SegmentKernel<T, N, false>, grid, kPartThreads, queue, typed, size, rows, places, slots, parts);
    LaunchOverlapping(SegmentKernel<T, N, true>, grid, kPartThreads, queue, typed, size, rows, places, slots, parts);
    LaunchOverlapping(SampleKernel<T>, grid.x, kThreads, queue, typed, size, rows, places, slots, end_ids, end_id_count,
                      ids, logprobs, max_new_tokens, parts);
  });
}

}  // namespace

void SetSampler(GpuKernels& table) { KGRPO_SET_KERNEL(table, sample, Sample); }

}  // namespace kgrpo::policy
