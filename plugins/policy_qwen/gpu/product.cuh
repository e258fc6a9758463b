// The shared part of the product kernels: their task, the order of its sums, how a result leaves, and the tensor cores'
// instruction. Used by product.cu, narrow_product.cuh and wide_product.cuh.
//
// The order of a sum: the inputs are cut into steps of 32, and the steps into kSlices x splits slices. A slice adds
// step after step, a split adds its kSlices slices in order, and the reader of the result adds the splits in order. The
// order follows from the weight's shape alone and is the same in every kernel, so a row's bits do not depend on the
// kernel.
#pragma once
#include <cuda_runtime.h>

#include "policy_qwen/gpu/kernels.h"
#include "policy_qwen/gpu/vectors.cuh"

namespace kgrpo::policy {

inline constexpr int kSlices = 4;  // of a split
inline constexpr int kStep = 32;   // inputs

__host__ __device__ inline int StepCount(int64_t inputs) {
  return static_cast<int>((inputs + kStep - 1) / kStep);
}

// The first step of slice `slice` of split `split`.
__device__ inline int SliceBegin(int steps, int split, int splits, int slice) {
  return steps * (split * kSlices + slice) / (splits * kSlices);
}

// Arguments of a product's kernel. A tile is 16 rows of the weight: with kSwiGlu 8 of gate and 8 of up.
struct ProductTask {
  const void* x;
  const void* weight;
  const void* bias;
  void* y;
  int rows, inputs, outputs;
};

// The row of the weight that is row i of a tile; -1 past its end.
template <ProductMode M>
__device__ inline int WeightRow(const ProductTask& task, int tile, int i) {
  if constexpr (M == ProductMode::kSwiGlu) {
    const int feature = tile * 8 + i % 8, half = task.outputs / 2;
    return feature < half ? feature + i / 8 * half : -1;
  } else {
    const int output = tile * 16 + i;
    return output < task.outputs ? output : -1;
  }
}

template <typename T>
__device__ inline T* RowOf(T* array, int row, int width) {
  return array + static_cast<int64_t>(row) * width;
}

// Writes the results of one row of x: the sums `low` of N neighbouring rows of a tile from i < 8 on, and `high` of the
// rows 8 further on. N is 1, or 2 if i is even; all N rows are inside or none, as widths are even then (CanPair).
template <typename T, ProductMode M, int N>
__device__ inline void Finish(const ProductTask& task, int tile, int i, int row, int split, Lanes<float, N> low,
                              Lanes<float, N> high) {
  if (row >= task.rows) return;
  const int first = WeightRow<M>(task, tile, i), second = WeightRow<M>(task, tile, i + 8);
  if constexpr (M == ProductMode::kPartial) {
    float* const y = RowOf(static_cast<float*>(task.y), split * task.rows + row, task.outputs);
    if (first >= 0) low.Store(y + first);
    if (second >= 0) high.Store(y + second);
  } else {
    const T* const bias = static_cast<const T*>(task.bias);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (bias != nullptr && first >= 0) low.at[k] += ToFloat(bias[first + k]);
      if (bias != nullptr && second >= 0) high.at[k] += ToFloat(bias[second + k]);
    }
    Lanes<T, N> out, more;
    if constexpr (M == ProductMode::kSwiGlu) {
      if (first < 0) return;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float gate = Rounded<T>(low.at[k]), up = Rounded<T>(high.at[k]);
        out.at[k] = Rounded<T>(gate / (1.0F + expf(-gate))) * up;
      }
      out.Store(RowOf(static_cast<T*>(task.y), row, task.outputs / 2) + first);
    } else {
      T* const y = RowOf(static_cast<T*>(task.y), row, task.outputs);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        out.at[k] = low.at[k];
        more.at[k] = high.at[k];
      }
      if (first >= 0) out.Store(y + first);
      if (second >= 0) more.Store(y + second);
    }
  }
}

// True if two neighbouring outputs may be written at once.
template <ProductMode M>
__device__ inline bool CanPair(const ProductTask& task) {
  return task.outputs % (M == ProductMode::kSwiGlu ? 4 : 2) == 0;
}

// Calls Finish for two neighbours: at once if CanPair, else one by one.
template <typename T, ProductMode M>
__device__ inline void FinishPair(const ProductTask& task, int tile, int i, int row, int split, float2 low,
                                  float2 high) {
  if (CanPair<M>(task)) {
    Finish<T, M, 2>(task, tile, i, row, split, {{low.x, low.y}}, {{high.x, high.y}});
  } else {
    Finish<T, M, 1>(task, tile, i, row, split, {{low.x}}, {{high.x}});
    Finish<T, M, 1>(task, tile, i + 1, row, split, {{low.y}}, {{high.y}});
  }
}

// Eight neighbouring inputs of a row, 16 bytes, are a lane's part t of a step: words 0 and 1 go into the step's first
// instruction, words 2 and 3 into its second. Which input an instruction calls its first is free, as long as both
// operands agree.
//
// A step: `top` and `bottom` are the lane's parts of a's rows g and g + 8, `b` of b's column g.
__device__ inline void AddStep(float (&sum)[4], const uint4& top, const uint4& bottom, const uint4& b) {
  Mma(sum, top.x, bottom.x, top.y, bottom.y, b.x, b.y);
  Mma(sum, top.z, bottom.z, top.w, bottom.w, b.z, b.w);
}

}  // namespace kgrpo::policy
