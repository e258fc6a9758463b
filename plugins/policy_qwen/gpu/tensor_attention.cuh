// Attention in bfloat16, on the tensor cores. Used by attention.cu.
#pragma once
#include "policy_qwen/gpu/attention_parts.cuh"
#include "policy_qwen/gpu/overlap.cuh"

namespace kgrpo::policy {

// Mma with zeros in a's rows 8 to 15.
__device__ inline void MultiplyAdd(float (&d)[4], uint32_t a0, uint32_t a2, uint32_t b0, uint32_t b1) {
  Mma(d, a0, 0, a2, 0, b0, b1);
}

__device__ inline uint32_t Pack(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ inline uint4 Load16(const __nv_bfloat16* from) {
  return *reinterpret_cast<const uint4*>(from);
}

// A warp takes 32 neighbouring positions of each split, all query heads of the KV head at once: the heads are the rows
// of both products. Operands go from memory to the tensor cores as they lie there: the order of a head's elements
// within an instruction is free as long as both operands agree, and so is the order of the result's columns.
//
// Earlier steps wrote all keys and values but the row's own, so those of the first split are read before the wait. Those
// of the next split are read while a split is joined.
template <int D>
__global__ void __launch_bounds__(kAttentionThreads)
    TensorAttentionKernel(HeadSums sums, LayerCache cache, const Place* places, HeadShape shape,
                          float scale, Parts parts, __nv_bfloat16* y) {
  using T = __nv_bfloat16;
  constexpr int kKeys = 32, kSteps = D / 32, kWide = D / 64, kItems = kMaxHeads * D / kAttentionThreads;
  static_assert(kAttentionWarps * kKeys == kAttentionSplit);
  __shared__ __align__(16) float joined[kAttentionWarps][kMaxHeads][D + 4];
  __shared__ float greatest[kAttentionWarps][kMaxHeads], totals[kAttentionWarps][kMaxHeads];
  __shared__ float bounds[kMaxHeads][2];
  __shared__ __align__(16) T made[(kMaxHeads + 2) * D];
  LetNextBegin();
  const int row = blockIdx.x;
  const int kv_head = blockIdx.y, each = shape.heads / shape.kv_heads;
  const Place place = places[row];  // written by the step's first kernel, which nothing overlaps
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int own = place.position, end = own + 1;

  const int32_t* const pages = cache.pages + static_cast<int64_t>(place.slot) * cache.pages_per_slot;
  // The first of the warp's positions of a split.
  const auto first_of = [&](int split) { return split * kAttentionSplit + warp * kKeys; };
  // Element `element` of a position; zeros for the row's own and behind it.
  const auto load = [&](const void* from, int position, int element) {
    if (position >= own) return make_uint4(0, 0, 0, 0);
    const int line = (pages[position / kPageSize] * shape.kv_heads + kv_head) * kPageSize + position % kPageSize;
    return Load16(static_cast<const T*>(from) + static_cast<int64_t>(line) * D + element);
  };
  // Position of a value that a lane loads: an instruction takes 16 positions, and a lane 2t, 2t + 1, 2t + 8 and 2t + 9
  // of them.
  const auto value_key = [&](int half, int i) { return half * 16 + 2 * t + i % 2 + i / 2 * 8; };
  uint4 keys[4][kSteps], early[2][4];  // early: the first 64 elements of the values
  const auto load_early = [&](int split) {
    const int first = first_of(split);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int i = 0; i < kSteps; ++i) keys[j][i] = load(cache.keys, first + j * 8 + g, i * 32 + t * 8);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 4; ++i) early[half][i] = load(cache.values, first + value_key(half, i), g * 8);
    }
  };
  load_early(parts.begin());
  const NewHeads<T, D> heads(sums, place, shape, parts);
  WaitForPrevious();
  if (!HasPositions<T, D>(place, shape, parts, y)) return;
  heads.Make(cache, made);

  float out[kItems];
  for (int split = parts.begin(); split < parts.end(place); ++split) {
    const int first = first_of(split);
    float most = -INFINITY, total = 0, values[kWide * 8][4] = {};
    if (first < end) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
          if (first + j * 8 + g == own) keys[j][i] = Load16(made + kMaxHeads * D + i * 32 + t * 8);
        }
      }
      uint4 q[kSteps];
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        q[i] = g < each ? Load16(made + g * D + i * 32 + t * 8) : make_uint4(0, 0, 0, 0);
      }
      float scores[4][4] = {};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
          MultiplyAdd(scores[j], q[i].x, q[i].y, keys[j][i].x, keys[j][i].y);
          MultiplyAdd(scores[j], q[i].z, q[i].w, keys[j][i].z, keys[j][i].w);
        }
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          scores[j][v] = first + j * 8 + 2 * t + v < end ? __fmul_rn(scores[j][v], scale) : -INFINITY;
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
            const int key = value_key(half, i);
            uint4 loaded = wide == 0 ? early[half][i] : load(cache.values, first + key, wide * 64 + g * 8);
            if (first + key == own) loaded = Load16(made + (kMaxHeads + 1) * D + wide * 64 + g * 8);
            words[i][0] = loaded.x;
            words[i][1] = loaded.y;
            words[i][2] = loaded.z;
            words[i][3] = loaded.w;
          }
          // Column g of instruction e is element 8 g + e: the 8 elements that a lane loaded of a position serve 8
          // instructions.
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            const uint32_t choice = e % 2 == 0 ? 0x5410 : 0x7632;
            MultiplyAdd(values[wide * 8 + e], a0, a2, __byte_perm(words[0][e / 2], words[1][e / 2], choice),
                        __byte_perm(words[2][e / 2], words[3][e / 2], choice));
          }
        }
      }
    }
    if (split + 1 < parts.end(place)) load_early(split + 1);
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
    JoinStreams<D>(joined, greatest, totals, out, bounds);
    __syncthreads();
    if (Parts::used(place) > 1) StorePart<T, D>(shape, parts, split, out, bounds);
  }
  JoinParts<T, D>(place, shape, parts, out, bounds, y);
}

}  // namespace kgrpo::policy
