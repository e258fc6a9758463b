// Makes a head of q, k or v from its product's partial sums: bias, norm, rotary positions. Also a position's place in
// the cache. Used by rows.cu, for prompts, and by attention_parts.cuh, for single new tokens.
#pragma once
#include "policy_qwen/gpu/kernels.h"
#include "policy_qwen/gpu/vectors.cuh"

namespace kgrpo::policy {

// A head in a warp: a lane holds the pairs (i, i + D / 2) for i = lane, lane + 32.
template <typename T, int D>
struct Head {
  static constexpr int kHalf = D / 2, kPairs = kHalf / 32;
  float first[kPairs] = {}, second[kPairs] = {};

  __device__ static Head Load(const T* from) {
    const int lane = threadIdx.x % 32;
    Head head;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      head.first[i] = ToFloat(from[i * 32 + lane]);
      head.second[i] = ToFloat(from[kHalf + i * 32 + lane]);
    }
    return head;
  }

  __device__ void Store(T* to) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      to[i * 32 + lane] = FromFloat<T>(first[i]);
      to[kHalf + i * 32 + lane] = FromFloat<T>(second[i]);
    }
  }
};

// The sum of a value over a product's splits, in order; `stride` elements lie between two of them.
__device__ inline float SumOfSplits(const float* from, int stride, int splits) {
  float part[kMaxSplits];
#pragma unroll
  for (int i = 0; i < kMaxSplits; ++i) part[i] = i < splits ? from[static_cast<int64_t>(i) * stride] : 0.0F;
  float sum = part[0];
#pragma unroll
  for (int i = 1; i < kMaxSplits; ++i) sum += part[i];
  return sum;
}

// Inputs of a row's head that no kernel writes: they can be read before a kernel waits for the one before it.
template <typename T, int D>
struct HeadFactors {
  Head<T, D> bias, norm, cos;
  float sin[Head<T, D>::kPairs];
};

// Loads the factors of head `head`, counted over a row's q, k and v in that order, at `position` >= 0. Called by a
// whole warp, as FinishHead is.
template <typename T, int D>
__device__ inline HeadFactors<T, D> LoadFactors(const HeadSums& in, HeadShape shape, int head, int position) {
  constexpr int kHalf = Head<T, D>::kHalf;
  const auto as = [](const void* data) { return static_cast<const T*>(data); };
  const T* norm = as(head < shape.heads ? in.query_norm : in.key_norm);
  HeadFactors<T, D> factors;
  if (in.bias != nullptr) factors.bias = Head<T, D>::Load(as(in.bias) + head * D);
  if (norm != nullptr) factors.norm = Head<T, D>::Load(norm);
  factors.cos = Head<T, D>::Load(as(in.cos) + static_cast<int64_t>(position) * D);
#pragma unroll
  for (int i = 0; i < Head<T, D>::kPairs; ++i) {
    factors.sin[i] = ToFloat(as(in.sin)[static_cast<int64_t>(position) * kHalf + i * 32 + threadIdx.x % 32]);
  }
  return factors;
}

// The sums of a head of row `row` of `rows`, over the splits.
template <typename T, int D>
__device__ inline Head<T, D> LoadSums(const HeadSums& in, HeadShape shape, int row, int rows, int head) {
  const int width = (shape.heads + 2 * shape.kv_heads) * D;
  const float* from = in.partial + static_cast<int64_t>(row) * width + head * D + threadIdx.x % 32;
  Head<T, D> sums;
#pragma unroll
  for (int i = 0; i < Head<T, D>::kPairs; ++i) {
    sums.first[i] = SumOfSplits(from + i * 32, rows * width, in.splits);
    sums.second[i] = SumOfSplits(from + i * 32 + D / 2, rows * width, in.splits);
  }
  return sums;
}

// Makes a head from its sums: bias, norm, rotary positions.
template <typename T, int D>
__device__ inline Head<T, D> FinishHead(const HeadSums& in, HeadShape shape, int head, Head<T, D> x,
                                        const HeadFactors<T, D>& factors) {
  constexpr int kPairs = Head<T, D>::kPairs;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    if (in.bias != nullptr) {
      x.first[i] += factors.bias.first[i];
      x.second[i] += factors.bias.second[i];
    }
    x.first[i] = Rounded<T>(x.first[i]);
    x.second[i] = Rounded<T>(x.second[i]);
  }
  if (head >= shape.heads + shape.kv_heads) return x;  // a value
  if ((head < shape.heads ? in.query_norm : in.key_norm) != nullptr) {
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) squares = fmaf(x.first[i], x.first[i], fmaf(x.second[i], x.second[i], squares));
    const float r = 1.0F / sqrtf(WarpSum(squares) / static_cast<float>(D) + in.epsilon);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      x.first[i] = Rounded<T>(Rounded<T>(x.first[i] * r) * factors.norm.first[i]);
      x.second[i] = Rounded<T>(Rounded<T>(x.second[i] * r) * factors.norm.second[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    // Each operation is explicit: two kernels must not differ in what the compiler fuses into a multiply-add.
    const float a = x.first[i], b = x.second[i], sine = factors.sin[i];
    x.first[i] = fmaf(-b, sine, Rounded<T>(__fmul_rn(a, factors.cos.first[i])));
    x.second[i] = fmaf(a, sine, Rounded<T>(__fmul_rn(b, factors.cos.second[i])));
  }
  return x;
}

// Calls body<T, D>().
template <typename Body>
void ForHeads(Element type, HeadShape shape, Body&& body) {
  ForElement(type, [&]<typename T>() {
    if (shape.size == 64) {
      body.template operator()<T, 64>();
    } else {
      body.template operator()<T, 128>();
    }
  });
}

// Offset in elements of the place's key or value of a KV head.
template <int D>
__device__ inline int64_t CacheOffset(const LayerCache& cache, HeadShape shape, const Place& place, int kv_head) {
  const int page = cache.pages[static_cast<int64_t>(place.slot) * cache.pages_per_slot + place.position / kPageSize];
  return static_cast<int64_t>((page * shape.kv_heads + kv_head) * kPageSize + place.position % kPageSize) * D;
}

}  // namespace kgrpo::policy
