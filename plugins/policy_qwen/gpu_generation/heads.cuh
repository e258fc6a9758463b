// What makes a head of q, k or v of its product's partial sums: bias, norm, rotary positions; and where the cache holds
// a position. Used by rows.cu, for prompts, and by attention.cu, for single new tokens.
#pragma once
#include "policy_qwen/gpu_generation/kernels.h"
#include "policy_qwen/gpu_training/vectors.cuh"

namespace kgrpo::policy {

// As GenerationKernels::finish_query_key_value takes them.
template <typename T>
struct HeadInputs {
  const float* partial;
  int64_t splits, row_count;
  const T *bias, *query_norm, *key_norm;
  float epsilon;
  const T *cos, *sin;
};

// A head in a warp: a lane holds the pairs (i, i + D / 2) for i = lane, lane + 32.
template <typename T, int D>
struct Head {
  static constexpr int kHalf = D / 2, kPairs = kHalf / 32;
  float first[kPairs] = {}, second[kPairs] = {};

  __device__ void Store(T* to) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      to[i * 32 + lane] = FromFloat<T>(first[i]);
      to[kHalf + i * 32 + lane] = FromFloat<T>(second[i]);
    }
  }
};

// Head `head` of the row's q, k and v, in that order, at `position` >= 0. Called by a whole warp.
template <typename T, int D>
__device__ inline Head<T, D> FinishHead(const HeadInputs<T>& in, HeadShape shape, int64_t row, int64_t head,
                                        int64_t position) {
  using Result = Head<T, D>;
  constexpr int kHalf = Result::kHalf, kPairs = Result::kPairs;
  const int64_t width = static_cast<int64_t>(shape.heads + 2 * shape.kv_heads) * D;
  const int lane = threadIdx.x % 32;
  Result x;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int64_t column = head * D + part * kHalf + i * 32 + lane;
      float sum = in.partial[row * width + column];
#pragma unroll 4
      for (int64_t split = 1; split < in.splits; ++split) {
        sum += in.partial[(split * in.row_count + row) * width + column];
      }
      if (in.bias != nullptr) sum += ToFloat(in.bias[column]);
      (part == 0 ? x.first[i] : x.second[i]) = Rounded<T>(sum);
    }
  }
  if (head >= shape.heads + shape.kv_heads) return x;  // a value
  const T* norm = head < shape.heads ? in.query_norm : in.key_norm;
  if (norm != nullptr) {
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) squares = fmaf(x.first[i], x.first[i], fmaf(x.second[i], x.second[i], squares));
    const float r = 1.0F / sqrtf(WarpSum(squares) / static_cast<float>(D) + in.epsilon);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int column = i * 32 + lane;
      x.first[i] = Rounded<T>(Rounded<T>(x.first[i] * r) * ToFloat(norm[column]));
      x.second[i] = Rounded<T>(Rounded<T>(x.second[i] * r) * ToFloat(norm[kHalf + column]));
    }
  }
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int64_t column = i * 32 + lane;
    const float a = x.first[i], b = x.second[i], sine = ToFloat(in.sin[position * kHalf + column]);
    x.first[i] = Rounded<T>(a * ToFloat(in.cos[position * D + column])) - b * sine;
    x.second[i] = Rounded<T>(b * ToFloat(in.cos[position * D + kHalf + column])) + a * sine;
  }
  return x;
}

// Where the place's key or value of a KV head lies, in elements.
template <int D>
__device__ inline int64_t CacheOffset(const LayerCache& cache, HeadShape shape, const Place& place, int64_t kv_head) {
  const int64_t page =
      cache.pages[static_cast<int64_t>(place.slot) * cache.pages_per_slot + place.position / kPageSize];
  return ((page * shape.kv_heads + kv_head) * kPageSize + place.position % kPageSize) * D;
}

}  // namespace kgrpo::policy
