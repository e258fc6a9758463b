// The shared part of both attention kernels: the making of a block's heads, and the joining of a row's splits. A
// split is kAttentionSplit positions of a row; a block goes through some splits, for the query heads that share a KV
// head. Used by attention.cu and tensor_attention.cuh.
#pragma once
#include "policy_qwen/gpu/heads.cuh"
#include "policy_qwen/gpu/vectors.cuh"

namespace kgrpo::policy {

inline constexpr int kAttentionWarps = 4, kAttentionThreads = 32 * kAttentionWarps;
inline constexpr int kMaxHeads = 8;  // query heads that share a KV head

// Destination of the splits' partial results.
struct Parts {
  float* sums;          // [rows, heads, splits, D]
  float* bounds;        // [rows, heads, splits, 2]: the greatest score and the sum of weights
  int32_t* arrived;     // [rows, kv heads], zeros between launches
  int splits, a_block;  // of a row; of a block

  // Range of the splits of block (row, kv_head, z), without those that hold no positions.
  __device__ int begin() const { return static_cast<int>(blockIdx.z) * a_block; }
  __device__ int end(const Place& place) const { return min(begin() + a_block, used(place)); }
  __device__ static int used(const Place& place) { return (place.position + kAttentionSplit) / kAttentionSplit; }
};

// The first step of block (row, kv_head, z): returns true if it has positions. Writes zeros for a row without any.
template <typename T, int D>
__device__ inline bool HasPositions(const Place& place, HeadShape shape, const Parts& parts, T* y) {
  const int row = blockIdx.x;
  const int each = shape.heads / shape.kv_heads;
  if (place.position < 0 && blockIdx.z == 0) {
    T* to = y + static_cast<int64_t>(row * shape.heads + static_cast<int>(blockIdx.y) * each) * D;
    for (int i = threadIdx.x; i < each * D; i += kAttentionThreads) to[i] = FromFloat<T>(0.0F);
  }
  return parts.begin() < parts.end(place);
}

// Makes a block's own heads: its queries and, if the block holds the row's own position, that key and value, which it
// also writes to the cache. All threads of the block call it. The constructor reads the inputs that may be read before
// WaitForPrevious.
template <typename T, int D>
class NewHeads {
 public:
  __device__ NewHeads(const HeadSums& sums, const Place& place, HeadShape shape, const Parts& parts)
      : sums_(sums), place_(place), shape_(shape), each_(shape.heads / shape.kv_heads) {
    const bool has_own = parts.end(place) == Parts::used(place);
    count_ = parts.begin() < parts.end(place) ? each_ + (has_own ? 2 : 0) : 0;
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      if (Index(i) < count_) factors_[i] = LoadFactors<T, D>(sums_, shape_, HeadOf(i), place_.position);
    }
  }

  // made: [kMaxHeads + 2, D] in shared memory: the queries, and at kMaxHeads the own key and value. Ends with a
  // barrier.
  __device__ void Make(const LayerCache& cache, T* made) const {
    Head<T, D> sums[kRounds];
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      if (Index(i) < count_) sums[i] = LoadSums<T, D>(sums_, shape_, blockIdx.x, gridDim.x, HeadOf(i));
    }
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const int index = Index(i);
      if (index >= count_) continue;
      const Head<T, D> head = FinishHead(sums_, shape_, HeadOf(i), sums[i], factors_[i]);
      head.Store(made + (index < each_ ? index : kMaxHeads + index - each_) * D);
      if (index >= each_) {
        head.Store(static_cast<T*>(index == each_ ? cache.keys : cache.values) +
                   CacheOffset<D>(cache, shape_, place_, blockIdx.y));
      }
    }
    __syncthreads();
  }

 private:
  static constexpr int kRounds = (kMaxHeads + 2 + kAttentionWarps - 1) / kAttentionWarps;

  __device__ int Index(int round) const {
    return static_cast<int>(threadIdx.x) / 32 + round * kAttentionWarps;
  }
  __device__ int HeadOf(int round) const {
    const int i = Index(round), kv_head = static_cast<int>(blockIdx.y);
    return i < each_ ? kv_head * each_ + i : shape_.heads + (i - each_) * shape_.kv_heads + kv_head;
  }

  const HeadSums& sums_;
  const Place place_;
  const HeadShape shape_;
  const int each_;
  int count_;
  HeadFactors<T, D> factors_[kRounds];
};

// Joins a block's S streams over a split, each with its greatest score, its sum of weights and its weighted sum of values
// for each head, in order: out[i] of item threadIdx.x + i kAttentionThreads of [heads, D], and the heads' bounds.
template <int D, int S, int H, int W>
__device__ inline void JoinStreams(const float (&joined)[S][H][W], const float (&greatest)[S][H],
                                   const float (&totals)[S][H], float (&out)[kMaxHeads * D / kAttentionThreads],
                                   float (&bounds)[kMaxHeads][2]) {
#pragma unroll
  for (int i = 0; i < kMaxHeads * D / kAttentionThreads; ++i) {
    const int item = threadIdx.x + i * kAttentionThreads, head = item / D, d = item % D;
    if (head >= H) break;
    float top = greatest[0][head];
#pragma unroll
    for (int s = 1; s < S; ++s) top = fmaxf(top, greatest[s][head]);
    float weight = 0;
    out[i] = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      const float factor = exp2f(greatest[s][head] - top);
      out[i] = fmaf(joined[s][head][d], factor, out[i]);
      weight = fmaf(totals[s][head], factor, weight);
    }
    if (d == 0) {
      bounds[head][0] = top;
      bounds[head][1] = weight;
    }
  }
}

// Stores a split's part of the result: out[i] of item threadIdx.x + i kAttentionThreads of [heads, D], not divided yet.
// `bounds` [kMaxHeads, 2] is in shared memory, and a barrier has made it visible.
template <typename T, int D>
__device__ inline void StorePart(HeadShape shape, const Parts& parts, int split,
                                 const float (&out)[kMaxHeads * D / kAttentionThreads],
                                 const float (&bounds)[kMaxHeads][2]) {
  const int each = shape.heads / shape.kv_heads, thread = static_cast<int>(threadIdx.x);
  const int first_head = static_cast<int>(blockIdx.x) * shape.heads + static_cast<int>(blockIdx.y) * each;
  float* const sums = parts.sums + static_cast<int64_t>(first_head * parts.splits + split) * D;
  float* const part_bounds = parts.bounds + static_cast<int64_t>(first_head * parts.splits + split) * 2;
#pragma unroll
  for (int i = 0; i < kMaxHeads * D / kAttentionThreads; ++i) {
    const int item = thread + i * kAttentionThreads;
    if (item < each * D) sums[item / D * parts.splits * D + item % D] = out[i];
  }
  if (thread < 2 * each) {
    part_bounds[thread / 2 * parts.splits * 2 + thread % 2] = bounds[thread / 2][thread % 2];
  }
}

// The last step of every block, by all its threads. The last of a row's blocks to arrive joins the parts of the row's
// splits, in order, kChunk at a time, and writes y. A row of one split takes its result from `out` and `bounds`, which
// are as in StorePart.
template <typename T, int D>
__device__ inline void JoinParts(const Place& place, HeadShape shape, const Parts& parts,
                                 const float (&out)[kMaxHeads * D / kAttentionThreads],
                                 const float (&bounds)[kMaxHeads][2], T* y) {
  constexpr int kItems = kMaxHeads * D / kAttentionThreads, kChunk = 8;
  __shared__ bool is_last;
  __shared__ float weights[kMaxHeads][kChunk], fades[kMaxHeads], totals[kMaxHeads];
  const int row = blockIdx.x;
  const int splits = parts.splits, used = Parts::used(place), each = shape.heads / shape.kv_heads;
  const int first_head = row * shape.heads + static_cast<int>(blockIdx.y) * each;
  T* const to = y + static_cast<int64_t>(first_head) * D;
  // total_of(head): the sum of the head's weights.
  const auto store = [&](int i, float sum, auto total_of) {
    const int item = static_cast<int>(threadIdx.x) + i * kAttentionThreads;
    if (item < each * D) to[item] = FromFloat<T>(sum / total_of(item / D));
  };
  if (used == 1) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) store(i, out[i], [&](int head) { return bounds[head][1]; });
    return;
  }
  const float* const sums =
      parts.sums + static_cast<int64_t>(first_head * splits) * D;  // of the KV head's first query head
  const float* const all_bounds = parts.bounds + static_cast<int64_t>(first_head * splits) * 2;
  __syncthreads();
  if (used > parts.a_block) {
    if (threadIdx.x == 0) {
      // The barrier orders the block's stores before this thread's fence, which makes them visible to the last block.
      int32_t* const arrived = parts.arrived + row * shape.kv_heads + blockIdx.y;
      __threadfence();
      is_last = atomicAdd(arrived, 1) + 1 == (used + parts.a_block - 1) / parts.a_block;
      if (is_last) *arrived = 0;
      __threadfence();
    }
    __syncthreads();
    if (!is_last) return;
  }

  float joined[kItems] = {}, top = -INFINITY, total = 0;  // top, total: of `head`, in thread head * kChunk + s
  for (int first = 0; first < used; first += kChunk) {
    float part[kItems][kChunk];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int item = static_cast<int>(threadIdx.x) + i * kAttentionThreads;
#pragma unroll
      for (int s = 0; s < kChunk; ++s) {
        const bool inside = item < each * D && first + s < used;
        part[i][s] = inside ? __ldcg(sums + (item / D * splits + first + s) * D + item % D) : 0.0F;
      }
    }
    if (static_cast<int>(threadIdx.x) < kMaxHeads * kChunk) {
      const int head = static_cast<int>(threadIdx.x) / kChunk, s = static_cast<int>(threadIdx.x) % kChunk;
      const bool inside = head < each && first + s < used;
      const float* const from = all_bounds + (head * splits + first + s) * 2;
      const float greatest = inside ? __ldcg(from) : -INFINITY, weight = inside ? __ldcg(from + 1) : 0.0F;
      float most = greatest;
#pragma unroll
      for (int offset = kChunk / 2; offset > 0; offset /= 2) {
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
      }
      most = head < each ? fmaxf(top, most) : 0.0F;
      const float fade = exp2f(top - most), factor = exp2f(greatest - most);
      total *= fade;
#pragma unroll
      for (int k = 0; k < kChunk; ++k) {
        total = fmaf(__shfl_sync(0xffffffffu, weight, k, kChunk), __shfl_sync(0xffffffffu, factor, k, kChunk), total);
      }
      top = most;
      weights[head][s] = factor;
      if (s == 0) {
        fades[head] = fade;
        totals[head] = total;
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int head = (static_cast<int>(threadIdx.x) + i * kAttentionThreads) / D;
      joined[i] *= fades[head];
#pragma unroll
      for (int s = 0; s < kChunk; ++s) joined[i] = fmaf(part[i][s], weights[head][s], joined[i]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) store(i, joined[i], [&](int head) { return totals[head]; });
}

}  // namespace kgrpo::policy
