// Attention of single rows over the paged cache: kernels.h. A row's positions are cut into splits of kAttentionSplit.
// Their parts are joined in order, so the bits do not depend on which block computed a part. bfloat16 runs on the
// tensor cores, float32 in plain multiply-adds.
#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "policy_qwen/gpu/attention_parts.cuh"
#include "policy_qwen/gpu/launch.cuh"
#include "policy_qwen/gpu/overlap.cuh"
#include "policy_qwen/gpu/tensor_attention.cuh"

namespace kgrpo::policy {
namespace {

// G: query heads a KV head, rounded up. The lanes that hold one key together form a stream. A stream goes over every
// kStreams-th position with an online softmax (Milakov and Gimelshein, 2018) of its own; the streams are joined in
// order.
template <typename T, int D, int G>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionKernel(HeadSums sums, LayerCache cache, const Place* places, HeadShape shape, float scale, Parts parts,
                    T* __restrict__ y) {
  constexpr int N = kWide<T>, kLanes = D / N, kKeys = 32 / kLanes, kStreams = kAttentionWarps * kKeys;
  __shared__ float joined[kStreams][G][D];
  __shared__ float greatest[kStreams][G], totals[kStreams][G];
  LetNextBegin();
  WaitForPrevious();
  const int row = blockIdx.x;
  const int kv_head = blockIdx.y;
  const Place place = places[row];
  if (!HasPositions<T, D>(place, shape, parts, y)) return;
  __shared__ __align__(16) T made[(kMaxHeads + 2) * D];
  NewHeads<T, D>(sums, place, shape, parts).Make(cache, made);
  const int each = shape.heads / shape.kv_heads;
  const int lane = threadIdx.x % 32, stream = threadIdx.x / 32 * kKeys + lane / kLanes, column = lane % kLanes * N;

  float q[G][N];
#pragma unroll
  for (int g = 0; g < G; ++g) {
    const auto lanes = Lanes<T, N>::Load(made + min(g, each - 1) * D + column);
#pragma unroll
    for (int i = 0; i < N; ++i) q[g][i] = lanes.at[i] * scale;
  }
  const int32_t* pages = cache.pages + static_cast<int64_t>(place.slot) * cache.pages_per_slot;
  constexpr int kItems = kMaxHeads * D / kAttentionThreads;
  __shared__ float bounds[kMaxHeads][2];
  float out[kItems] = {};
  for (int split = parts.begin(); split < parts.end(place); ++split) {
    const int begin = split * kAttentionSplit, end = min(place.position + 1, begin + kAttentionSplit);
    float sum[G][N] = {}, most[G], total[G] = {};
#pragma unroll
    for (int g = 0; g < G; ++g) most[g] = -INFINITY;
#pragma unroll 2
    for (int base = begin; base < end; base += kStreams) {
      const int position = base + stream;
      const bool valid = position < end;
      Lanes<T, N> key{}, value{};
      if (valid) {
        const int64_t at = ((static_cast<int64_t>(pages[position / kPageSize]) * shape.kv_heads + kv_head) * kPageSize +
                            position % kPageSize) *
                               D +
                           column;
        key = Lanes<T, N>::Load(static_cast<const T*>(cache.keys) + at);
        value = Lanes<T, N>::Load(static_cast<const T*>(cache.values) + at);
      }
#pragma unroll
      for (int g = 0; g < G; ++g) {
        float score = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) score = fmaf(q[g][i], key.at[i], score);
#pragma unroll
        for (int offset = kLanes / 2; offset > 0; offset /= 2) score += __shfl_xor_sync(0xffffffffu, score, offset);
        if (!valid) continue;
        const float now = fmaxf(most[g], score), fade = exp2f(most[g] - now), p = exp2f(score - now);
        most[g] = now;
        total[g] = fmaf(total[g], fade, p);
#pragma unroll
        for (int i = 0; i < N; ++i) sum[g][i] = fmaf(sum[g][i], fade, p * value.at[i]);
      }
    }
#pragma unroll
    for (int g = 0; g < G; ++g) {
#pragma unroll
      for (int i = 0; i < N; ++i) joined[stream][g][column + i] = sum[g][i];
      if (lane % kLanes == 0) {
        greatest[stream][g] = most[g];
        totals[stream][g] = total[g];
      }
    }
    __syncthreads();
    JoinStreams<D>(joined, greatest, totals, out, bounds);
    __syncthreads();
    if (Parts::used(place) > 1) StorePart<T, D>(shape, parts, split, out, bounds);
  }
  JoinParts<T, D>(place, shape, parts, out, bounds, y);
}

template <typename T, int D>
void Launch(const HeadSums& sums, LayerCache cache, const Place* places, int64_t row_count, HeadShape shape,
            Parts parts, void* y, cudaStream_t stream) {
  // Aims at as many blocks as run at a time, or a few less. A block that goes through several splits makes its queries
  // once, and reads the next split's keys while it computes. So each split has its own block only if all of them fit.
  const int64_t blocks = row_count * shape.kv_heads * parts.splits;
  parts.a_block = static_cast<int>(std::min<int64_t>((blocks + kBlocksWanted - 1) / kBlocksWanted, parts.splits));
  const dim3 grid(Blocks(row_count, 1), static_cast<unsigned>(shape.kv_heads), Blocks(parts.splits, parts.a_block));
  constexpr float kLog2E = 1.4426950408889634F;
  const float scale = kLog2E / sqrtf(static_cast<float>(D));
  const auto launch = [&](auto kernel) {
    LaunchOverlapping(kernel, grid, kAttentionThreads, stream, sums, cache, places, shape, scale, parts,
                      static_cast<T*>(y));
  };
  const int each = shape.heads / shape.kv_heads;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    launch(TensorAttentionKernel<D>);
  } else if (each == 1) {
    launch(AttentionKernel<T, D, 1>);
  } else if (each == 2) {
    launch(AttentionKernel<T, D, 2>);
  } else if (each <= 4) {
    launch(AttentionKernel<T, D, 4>);
  } else {
    launch(AttentionKernel<T, D, 8>);
  }
}

void Attention(Element type, HeadSums heads, LayerCache cache, const Place* places, int64_t row_count, HeadShape shape,
               int64_t position_splits, float* sums, float* bounds, int32_t* arrived, void* y, GpuStream stream) {
  ForHeads(type, shape, [&]<typename T, int D>() {
    Launch<T, D>(heads, cache, places, row_count, shape, {sums, bounds, arrived, static_cast<int>(position_splits), 1},
                 y, StreamOf(stream));
  });
}

}  // namespace

void SetAttention(GpuKernels& table) { KGRPO_SET_KERNEL(table, attention, Attention); }

}  // namespace kgrpo::policy
