// The product of few rows, in bfloat16: bound by reading the weight. Used by product.cu.
#pragma once
#include "policy_qwen/gpu/overlap.cuh"
#include "policy_qwen/gpu/product.cuh"

namespace kgrpo::policy {

// Weights are read once a step: they must not evict the data that kernels exchange from the L1 cache.
__device__ inline uint4 LoadWeights(const __nv_bfloat16* from) {
  uint4 words;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from));
  return words;
}

// A block: one tile, 8 NT rows, a warp for each slice. The weight's rows are the instruction's 16, the step's rows
// its 8. All goes from memory to registers, weights kDepth steps ahead, rows kRowDepth.
//
// No kernel writes weights, so the loads of their first steps begin before the kernel waits for the previous one.
template <ProductMode M, int NT>
__global__ void __launch_bounds__(32 * kSlices) NarrowKernel(ProductTask task) {
  constexpr int kDepth = NT == 4 ? 4 : 8, kRowDepth = 4;
  __shared__ float sums[kSlices][NT][32][4];
  const int tile = blockIdx.y, first_row = blockIdx.x * 8 * NT;
  const int split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32, part = lane % 4 * 8;
  const int begin = SliceBegin(steps, split, splits, slice), end = SliceBegin(steps, split, splits, slice + 1);
  LetNextBegin();
  const int weight_rows[2] = {WeightRow<M>(task, tile, lane / 4), WeightRow<M>(task, tile, lane / 4 + 8)};
  uint4 ring[kDepth][2];
  const auto fetch = [&](int slot, int step) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool inside = weight_rows[i] >= 0 && step * kStep + part < task.inputs;
      const auto* const weight = static_cast<const __nv_bfloat16*>(task.weight) + part;
      ring[slot][i] =
          inside ? LoadWeights(RowOf(weight, weight_rows[i], task.inputs) + step * kStep) : make_uint4(0, 0, 0, 0);
    }
  };
#pragma unroll
  for (int i = 0; i < kDepth; ++i) {
    if (begin + i < end) fetch(i, begin + i);
  }
  WaitForPrevious();
  const __nv_bfloat16* row_from[NT];
#pragma unroll
  for (int n = 0; n < NT; ++n) {
    const int row = first_row + n * 8 + lane / 4;
    row_from[n] = row < task.rows ? RowOf(static_cast<const __nv_bfloat16*>(task.x), row, task.inputs) + part : nullptr;
  }
  uint4 rows[kRowDepth][NT];
  const auto fetch_rows = [&](int slot, int step) {
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      const bool inside = row_from[n] != nullptr && step * kStep + part < task.inputs;
      rows[slot][n] = inside ? *reinterpret_cast<const uint4*>(row_from[n] + step * kStep) : make_uint4(0, 0, 0, 0);
    }
  };
#pragma unroll
  for (int i = 0; i < kRowDepth; ++i) {
    if (begin + i < end) fetch_rows(i, begin + i);
  }
  float sum[NT][4] = {};
  for (int first = begin; first < end; first += kDepth) {
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const int step = first + i;
      if (step >= end) break;
#pragma unroll
      for (int n = 0; n < NT; ++n) AddStep(sum[n], ring[i][0], ring[i][1], rows[i % kRowDepth][n]);
      if (step + kDepth < end) fetch(i, step + kDepth);
      if (step + kRowDepth < end) fetch_rows(i % kRowDepth, step + kRowDepth);
    }
  }
#pragma unroll
  for (int n = 0; n < NT; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[slice][n][lane][i] = sum[n][i];
  }
  __syncthreads();
  for (int item = threadIdx.x; item < NT * 64; item += 32 * kSlices) {
    const int n = item / 64, from = item / 2 % 32, j = item % 2;
    float low = 0, high = 0;
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      low += sums[s][n][from][j];
      high += sums[s][n][from][j + 2];
    }
    Finish<__nv_bfloat16, M, 1>(task, tile, from / 4, first_row + n * 8 + from % 4 * 2 + j, split, {{low}}, {{high}});
  }
}

}  // namespace kgrpo::policy
