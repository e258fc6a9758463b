// Attention of single rows over the paged cache: kernels.h. A block covers kAttentionSplit positions for the query
// heads that share a KV head; a second kernel joins the splits. Where a split begins depends on positions alone.
#include <cuda_runtime.h>

#include "policy_qwen/gpu_generation/launchers.h"
#include "policy_qwen/gpu_training/vectors.cuh"

namespace kgrpo::policy {
namespace {

constexpr int kWarps = 4;

// G: query heads a KV head, rounded up. Lanes that hold one key together are a stream: it goes over every kStreams-th
// position with an online softmax (Milakov and Gimelshein, 2018) of its own; the streams are joined in order.
template <typename T, int D, int G>
__global__ void __launch_bounds__(32 * kWarps)
    AttentionKernel(const T* __restrict__ query, LayerCache cache, const Place* __restrict__ places, HeadShape shape,
                    float scale, float* __restrict__ sums, float* __restrict__ bounds) {
  constexpr int N = kWide<T>, kLanes = D / N, kKeys = 32 / kLanes, kStreams = kWarps * kKeys;
  __shared__ float joined[kStreams][G][D];
  __shared__ float greatest[kStreams][G], totals[kStreams][G];
  const int64_t row = blockIdx.x;
  const int kv_head = blockIdx.y, split = blockIdx.z, splits = gridDim.z;
  const Place place = places[row];
  const int begin = split * kAttentionSplit, end = min(place.position + 1, begin + kAttentionSplit);
  if (begin >= end) return;
  const int each = shape.heads / shape.kv_heads, first_head = kv_head * each;
  const int lane = threadIdx.x % 32, stream = threadIdx.x / 32 * kKeys + lane / kLanes, column = lane % kLanes * N;

  float q[G][N], sum[G][N], most[G], total[G];
#pragma unroll
  for (int g = 0; g < G; ++g) {
    most[g] = -INFINITY;
    total[g] = 0;
    const auto lanes = Lanes<T, N>::Load(query + (row * shape.heads + first_head + min(g, each - 1)) * D + column);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      q[g][i] = lanes.at[i] * scale;
      sum[g][i] = 0;
    }
  }
  const int32_t* pages = cache.pages + static_cast<int64_t>(place.slot) * cache.pages_per_slot;
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
  for (int i = threadIdx.x; i < each * D; i += 32 * kWarps) {
    const int g = i / D, d = i % D;
    float top = greatest[0][g];
    for (int s = 1; s < kStreams; ++s) top = fmaxf(top, greatest[s][g]);
    float out = 0, weight = 0;
    for (int s = 0; s < kStreams; ++s) {
      const float factor = exp2f(greatest[s][g] - top);
      out = fmaf(joined[s][g][d], factor, out);
      weight = fmaf(totals[s][g], factor, weight);
    }
    const int64_t place_of_head = (row * shape.heads + first_head + g) * splits + split;
    sums[place_of_head * D + d] = out;
    if (d == 0) {
      bounds[place_of_head * 2] = top;
      bounds[place_of_head * 2 + 1] = weight;
    }
  }
}

template <typename T, int D>
__global__ void __launch_bounds__(D)
    JoinSplitsKernel(const float* __restrict__ sums, const float* __restrict__ bounds, const Place* __restrict__ places,
                     int heads, int splits, T* __restrict__ y) {
  const int64_t row = blockIdx.x, at = row * heads + blockIdx.y;
  const int position = places[row].position, d = threadIdx.x;
  const int used = position < 0 ? 0 : position / kAttentionSplit + 1;
  float top = -INFINITY, out = 0, weight = 0;
  for (int s = 0; s < used; ++s) top = fmaxf(top, bounds[(at * splits + s) * 2]);
  for (int s = 0; s < used; ++s) {
    const float factor = exp2f(bounds[(at * splits + s) * 2] - top);
    out = fmaf(sums[(at * splits + s) * D + d], factor, out);
    weight = fmaf(bounds[(at * splits + s) * 2 + 1], factor, weight);
  }
  y[at * D + d] = FromFloat<T>(used == 0 ? 0.0F : out / weight);
}

template <typename T, int D>
void Launch(const void* query, LayerCache cache, const Place* places, int64_t row_count, HeadShape shape,
            int64_t position_splits, float* sums, float* bounds, void* y, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(row_count), static_cast<unsigned>(shape.kv_heads),
                  static_cast<unsigned>(position_splits));
  constexpr float kLog2E = 1.4426950408889634F;
  const float scale = kLog2E / sqrtf(static_cast<float>(D));
  const auto launch = [&](auto kernel) {
    kernel<<<grid, 32 * kWarps, 0, stream>>>(static_cast<const T*>(query), cache, places, shape, scale, sums, bounds);
  };
  const int each = shape.heads / shape.kv_heads;
  if (each == 1) {
    launch(AttentionKernel<T, D, 1>);
  } else if (each == 2) {
    launch(AttentionKernel<T, D, 2>);
  } else if (each <= 4) {
    launch(AttentionKernel<T, D, 4>);
  } else {
    launch(AttentionKernel<T, D, 8>);
  }
  JoinSplitsKernel<T, D><<<dim3(static_cast<unsigned>(row_count), static_cast<unsigned>(shape.heads)), D, 0, stream>>>(
      sums, bounds, places, shape.heads, static_cast<int>(position_splits), static_cast<T*>(y));
}

}  // namespace

void Attention(Element type, const void* query, LayerCache cache, const Place* places, int64_t row_count,
               HeadShape shape, int64_t position_splits, float* sums, float* bounds, void* y, void* stream) {
  const auto launch = [&](auto function) {
    function(query, cache, places, row_count, shape, position_splits, sums, bounds, y,
             static_cast<cudaStream_t>(stream));
  };
  if (type == Element::kBfloat16) {
    launch(shape.size == 64 ? Launch<__nv_bfloat16, 64> : Launch<__nv_bfloat16, 128>);
  } else {
    launch(shape.size == 64 ? Launch<float, 64> : Launch<float, 128>);
  }
}

}  // namespace kgrpo::policy
