// Attention of single rows over the paged cache: kernels.h. A block covers kAttentionSplit positions for the query
// heads that share a KV head; the last of a row's blocks to arrive joins them, in order. Where a split begins depends
// on positions alone. bfloat16 runs on the tensor cores, float32 in plain multiply-adds.
#include <cuda_runtime.h>

#include <type_traits>

#include "policy_qwen/gpu_generation/heads.cuh"
#include "policy_qwen/gpu_generation/launchers.h"
#include "policy_qwen/gpu_generation/overlap.cuh"
#include "policy_qwen/gpu_training/vectors.cuh"

namespace kgrpo::policy {
namespace {

constexpr int kWarps = 4;

// Where a block's part of the result goes.
struct Parts {
  float* sums;       // [rows, heads, splits, D]
  float* bounds;     // [rows, heads, splits, 2]: the greatest score and the sum of weights
  int32_t* arrived;  // [rows, kv heads], zeros between launches
};

// What block (row, kv_head, split) does at first: false where it has no positions. A row in vain gets zeros.
template <typename T, int D>
__device__ inline bool HasPositions(const Place& place, HeadShape shape, T* y) {
  const int64_t row = blockIdx.x;
  const int split = blockIdx.z, each = shape.heads / shape.kv_heads;
  if (place.position < 0 && split == 0) {
    T* to = y + (row * shape.heads + static_cast<int>(blockIdx.y) * each) * D;
    for (int i = threadIdx.x; i < each * D; i += 32 * kWarps) to[i] = FromFloat<T>(0.0F);
  }
  return split * kAttentionSplit <= place.position;
}

// Where a kernel finds its queries: made before, or, of rows that are alone in their slots (kNew), still to be made of
// the product's sums, with the row's own key and value.
template <typename T>
struct Queries {
  const T* made;  // [rows, heads, D], or null
  HeadInputs<T> inputs;
};

// With kNew the block makes what it needs, all its threads. Returns its first query.
template <typename T, int D, bool kNew>
__device__ inline const T* QueriesOf(const Queries<T>& queries, const Place& place, HeadShape shape,
                                     const LayerCache& cache) {
  const int64_t row = blockIdx.x, kv_head = blockIdx.y;
  const int each = shape.heads / shape.kv_heads;
  if constexpr (!kNew) {
    return queries.made + (row * shape.heads + kv_head * each) * D;
  } else {
    __shared__ __align__(16) T made[8 * D];
    const bool has_own = place.position / kAttentionSplit == static_cast<int>(blockIdx.z);
    for (int i = threadIdx.x / 32; i < each + (has_own ? 2 : 0); i += kWarps) {
      const int64_t head = i < each ? kv_head * each + i : shape.heads + (i - each) * shape.kv_heads + kv_head;
      const Head<T, D> finished = FinishHead<T, D>(queries.inputs, shape, row, head, place.position);
      if (i < each) {
        finished.Store(made + i * D);
      } else {
        finished.Store(static_cast<T*>(i == each ? cache.keys : cache.values) +
                       CacheOffset<D>(cache, shape, place, kv_head));
      }
    }
    __syncthreads();
    return made;
  }
}

// What every block does at last, all its threads, after its part is stored: the last to arrive joins the row's parts.
template <typename T, int D>
__device__ inline void JoinParts(const Place& place, HeadShape shape, const Parts& parts, T* y) {
  __shared__ bool is_last;
  const int64_t row = blockIdx.x;
  const int splits = gridDim.z, used = place.position / kAttentionSplit + 1, each = shape.heads / shape.kv_heads;
  if (used > 1) __threadfence();
  __syncthreads();
  if (used > 1) {
    if (threadIdx.x == 0) {
      int32_t* arrived = parts.arrived + row * shape.kv_heads + blockIdx.y;
      is_last = atomicAdd(arrived, 1) + 1 == used;
      if (is_last) *arrived = 0;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
  }
  for (int i = threadIdx.x; i < each * D; i += 32 * kWarps) {
    const int d = i % D;
    const int64_t at = row * shape.heads + static_cast<int>(blockIdx.y) * each + i / D;
    const float* bounds = parts.bounds + at * splits * 2;
    const float* sums = parts.sums + at * splits * D + d;
    float top = -INFINITY, out = 0, weight = 0;
    for (int s = 0; s < used; ++s) top = fmaxf(top, __ldcg(bounds + s * 2));
#pragma unroll 4
    for (int s = 0; s < used; ++s) {
      const float factor = exp2f(__ldcg(bounds + s * 2) - top);
      out = fmaf(__ldcg(sums + s * D), factor, out);
      weight = fmaf(__ldcg(bounds + s * 2 + 1), factor, weight);
    }
    y[at * D + d] = FromFloat<T>(out / weight);
  }
}

// G: query heads a KV head, rounded up. Lanes that hold one key together are a stream: it goes over every kStreams-th
// position with an online softmax (Milakov and Gimelshein, 2018) of its own; the streams are joined in order.
template <typename T, int D, int G, bool kNew>
__global__ void __launch_bounds__(32 * kWarps)
    AttentionKernel(Queries<T> queries, LayerCache cache, const Place* places, HeadShape shape, float scale,
                    Parts parts, T* __restrict__ y) {
  constexpr int N = kWide<T>, kLanes = D / N, kKeys = 32 / kLanes, kStreams = kWarps * kKeys;
  __shared__ float joined[kStreams][G][D];
  __shared__ float greatest[kStreams][G], totals[kStreams][G];
  LetNextBegin();
  WaitForPrevious();
  const int64_t row = blockIdx.x;
  const int kv_head = blockIdx.y, split = blockIdx.z, splits = gridDim.z;
  const Place place = places[row];
  const int begin = split * kAttentionSplit, end = min(place.position + 1, begin + kAttentionSplit);
  if (!HasPositions<T, D>(place, shape, y)) return;
  const T* query = QueriesOf<T, D, kNew>(queries, place, shape, cache);
  const int each = shape.heads / shape.kv_heads, first_head = kv_head * each;
  const int lane = threadIdx.x % 32, stream = threadIdx.x / 32 * kKeys + lane / kLanes, column = lane % kLanes * N;

  float q[G][N], sum[G][N], most[G], total[G];
#pragma unroll
  for (int g = 0; g < G; ++g) {
    most[g] = -INFINITY;
    total[g] = 0;
    const auto lanes = Lanes<T, N>::Load(query + min(g, each - 1) * D + column);
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
    parts.sums[place_of_head * D + d] = out;
    if (d == 0) {
      parts.bounds[place_of_head * 2] = top;
      parts.bounds[place_of_head * 2 + 1] = weight;
    }
  }
  JoinParts<T, D>(place, shape, parts, y);
}

// ---- bfloat16 ----

// d += a b, a 16 x 16 with zeros in its rows 8 to 15, b 16 x 8. A lane (g = lane / 4, t = lane % 4) holds of a row g,
// columns 2t, 2t + 1 (a0) and 8 further (a2); of b column g, rows 2t, 2t + 1 (b0) and 8 further (b1); of d row g,
// columns 2t and 2t + 1 (d[0], d[1]).
__device__ inline void Mma(float (&d)[4], uint32_t a0, uint32_t a2, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %5}, {%7, %8}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(0U), "r"(a2), "r"(b0), "r"(b1));
}

__device__ inline uint32_t Pack(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ inline uint4 Load16(const __nv_bfloat16* from) {
  return *reinterpret_cast<const uint4*>(from);
}

// A warp takes 32 neighbouring positions, all query heads of the KV head at once: the heads are the rows of both
// products. Operands go from memory to the tensor cores as they lie there: which element of a head an instruction calls
// its first is free as long as both operands agree, and so is which column of the result holds which element.
template <int D, bool kNew>
__global__ void __launch_bounds__(32 * kWarps)
    TensorAttentionKernel(Queries<__nv_bfloat16> queries, LayerCache cache, const Place* places, HeadShape shape,
                          float scale, Parts parts, __nv_bfloat16* __restrict__ y) {
  constexpr int kHeads = 8, kKeys = 32, kSteps = D / 32, kWide = D / 64;
  static_assert(kWarps * kKeys == kAttentionSplit);
  __shared__ __align__(16) float joined[kWarps][kHeads][D + 4];
  __shared__ float greatest[kWarps][kHeads], totals[kWarps][kHeads];
  LetNextBegin();
  WaitForPrevious();
  const int64_t row = blockIdx.x;
  const int kv_head = blockIdx.y, split = blockIdx.z, splits = gridDim.z;
  const Place place = places[row];
  const int begin = split * kAttentionSplit, end = min(place.position + 1, begin + kAttentionSplit);
  if (!HasPositions<__nv_bfloat16, D>(place, shape, y)) return;
  const __nv_bfloat16* query = QueriesOf<__nv_bfloat16, D, kNew>(queries, place, shape, cache);
  const int each = shape.heads / shape.kv_heads, first_head = kv_head * each;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int first = begin + warp * kKeys;

  float most = -INFINITY, total = 0, values[kWide * 8][4] = {};
  if (first < end) {
    const int32_t* pages = cache.pages + static_cast<int64_t>(place.slot) * cache.pages_per_slot;
    // Element `element` of position first + key; zeros behind the row's own.
    const auto load = [&](const void* from, int key, int element) {
      const int position = first + key;
      if (position >= end) return make_uint4(0, 0, 0, 0);
      const int64_t line = (static_cast<int64_t>(pages[position / kPageSize]) * shape.kv_heads + kv_head) * kPageSize +
                           position % kPageSize;
      return Load16(static_cast<const __nv_bfloat16*>(from) + line * D + element);
    };
    // Of the sums of values an instruction takes 16 positions; a lane those of rows 2t, 2t + 1 and 8 further.
    const auto value = [&](int half, int i, int wide) {
      return load(cache.values, half * 16 + 2 * t + i % 2 + i / 2 * 8, wide * 64 + g * 8);
    };
    uint4 early[2][4];  // on their way while the scores are computed
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 4; ++i) early[half][i] = value(half, i, 0);
    }
    uint4 q[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      q[i] = g < each ? Load16(query + g * D + i * 32 + t * 8) : make_uint4(0, 0, 0, 0);
    }
    float scores[4][4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        const uint4 key = load(cache.keys, j * 8 + g, i * 32 + t * 8);
        Mma(scores[j], q[i].x, q[i].y, key.x, key.y);
        Mma(scores[j], q[i].z, q[i].w, key.z, key.w);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        scores[j][v] = first + j * 8 + 2 * t + v < end ? scores[j][v] * scale : -INFINITY;
        most = fmaxf(most, scores[j][v]);
      }
    }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        scores[j][v] = exp2f(scores[j][v] - most);
        total += scores[j][v];
      }
    }
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t a0 = Pack(scores[2 * half][0], scores[2 * half][1]);
      const uint32_t a2 = Pack(scores[2 * half + 1][0], scores[2 * half + 1][1]);
#pragma unroll
      for (int wide = 0; wide < kWide; ++wide) {
        uint32_t words[4][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint4 loaded = wide == 0 ? early[half][i] : value(half, i, wide);
          words[i][0] = loaded.x;
          words[i][1] = loaded.y;
          words[i][2] = loaded.z;
          words[i][3] = loaded.w;
        }
        // Column g of instruction e is element 8 g + e: what a lane loaded of one position is its part of eight.
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const uint32_t choice = e % 2 == 0 ? 0x5410 : 0x7632;
          Mma(values[wide * 8 + e], a0, a2, __byte_perm(words[0][e / 2], words[1][e / 2], choice),
              __byte_perm(words[2][e / 2], words[3][e / 2], choice));
        }
      }
    }
  }
#pragma unroll
  for (int wide = 0; wide < kWide; ++wide) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      float* to = &joined[warp][g][wide * 64 + 8 * (2 * t + v)];
#pragma unroll
      for (int e = 0; e < 8; e += 4) {
        *reinterpret_cast<float4*>(to + e) = make_float4(values[wide * 8 + e][v], values[wide * 8 + e + 1][v],
                                                         values[wide * 8 + e + 2][v], values[wide * 8 + e + 3][v]);
      }
    }
  }
  if (t == 0) {
    greatest[warp][g] = most;
    totals[warp][g] = total;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < each * D; i += 32 * kWarps) {
    const int head = i / D, d = i % D;
    float top = greatest[0][head];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) top = fmaxf(top, greatest[w][head]);
    float out = 0, weight = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float factor = exp2f(greatest[w][head] - top);
      out = fmaf(joined[w][head][d], factor, out);
      weight = fmaf(totals[w][head], factor, weight);
    }
    const int64_t place_of_head = (row * shape.heads + first_head + head) * splits + split;
    parts.sums[place_of_head * D + d] = out;
    if (d == 0) {
      parts.bounds[place_of_head * 2] = top;
      parts.bounds[place_of_head * 2 + 1] = weight;
    }
  }
  JoinParts<__nv_bfloat16, D>(place, shape, parts, y);
}

template <typename T, int D, bool kNew>
void Launch(const Queries<T>& queries, LayerCache cache, const Place* places, int64_t row_count, HeadShape shape,
            int64_t position_splits, const Parts& parts, void* y, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(row_count), static_cast<unsigned>(shape.kv_heads),
                  static_cast<unsigned>(position_splits));
  constexpr float kLog2E = 1.4426950408889634F;
  const float scale = kLog2E / sqrtf(static_cast<float>(D));
  const auto launch = [&](auto kernel) {
    LaunchOverlapping(kernel, grid, 32 * kWarps, stream, queries, cache, places, shape, scale, parts,
                      static_cast<T*>(y));
  };
  const int each = shape.heads / shape.kv_heads;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    launch(TensorAttentionKernel<D, kNew>);
  } else if (each == 1) {
    launch(AttentionKernel<T, D, 1, kNew>);
  } else if (each == 2) {
    launch(AttentionKernel<T, D, 2, kNew>);
  } else if (each <= 4) {
    launch(AttentionKernel<T, D, 4, kNew>);
  } else {
    launch(AttentionKernel<T, D, 8, kNew>);
  }
}

// Calls body<T, D>().
template <typename Body>
void ForHeads(Element type, HeadShape shape, Body&& body) {
  if (type == Element::kBfloat16 && shape.size == 64) {
    body.template operator()<__nv_bfloat16, 64>();
  } else if (type == Element::kBfloat16) {
    body.template operator()<__nv_bfloat16, 128>();
  } else if (shape.size == 64) {
    body.template operator()<float, 64>();
  } else {
    body.template operator()<float, 128>();
  }
}

}  // namespace

void Attention(Element type, const void* query, LayerCache cache, const Place* places, int64_t row_count,
               HeadShape shape, int64_t position_splits, float* sums, float* bounds, int32_t* arrived, void* y,
               void* stream) {
  ForHeads(type, shape, [&]<typename T, int D>() {
    Launch<T, D, false>({static_cast<const T*>(query), {}}, cache, places, row_count, shape, position_splits,
                        {sums, bounds, arrived}, y, static_cast<cudaStream_t>(stream));
  });
}

void AttentionOfNew(Element type, const float* partial, int64_t splits, const void* bias, const void* query_norm,
                    const void* key_norm, float epsilon, const void* cos, const void* sin, LayerCache cache,
                    const Place* places, int64_t row_count, HeadShape shape, int64_t position_splits, float* sums,
                    float* bounds, int32_t* arrived, void* y, void* stream) {
  ForHeads(type, shape, [&]<typename T, int D>() {
    const HeadInputs<T> inputs = {partial,
                                  splits,
                                  row_count,
                                  static_cast<const T*>(bias),
                                  static_cast<const T*>(query_norm),
                                  static_cast<const T*>(key_norm),
                                  epsilon,
                                  static_cast<const T*>(cos),
                                  static_cast<const T*>(sin)};
    Launch<T, D, true>({nullptr, inputs}, cache, places, row_count, shape, position_splits, {sums, bounds, arrived}, y,
                       static_cast<cudaStream_t>(stream));
  });
}

}  // namespace kgrpo::policy
