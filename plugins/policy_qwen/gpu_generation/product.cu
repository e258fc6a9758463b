// Products of rows with a weight: kernels.h. bfloat16 runs on the tensor cores (mma.sync m16n8k16, weights as the 16
// rows, the step's rows as the 8 columns), float32 in plain multiply-adds.
//
// The order of a sum: the inputs are cut into steps of 32 and the steps into kSlices x splits slices; a slice adds step
// after step, a split adds its kSlices slices in order, whoever reads the result adds the splits in order. All of that
// follows from the weight's shape. The narrow kernel gives each slice to a warp, the wide one goes through the slices
// of a split one after the other: the same sums, so that rows may move from one to the other without a changed bit.
//
// Weights are no kernel's output: their first steps are on their way before the kernel waits for the one before it.
#include <cuda_runtime.h>

#include <algorithm>

#include "policy_qwen/gpu_generation/launchers.h"
#include "policy_qwen/gpu_generation/overlap.cuh"
#include "policy_qwen/gpu_training/vectors.cuh"

namespace kgrpo::policy {
namespace {

constexpr int kSlices = 4;          // of a split: the warps of a narrow block
constexpr int kStep = 32;           // inputs
constexpr int kBlocksWanted = 264;  // two for each multiprocessor of an H100

__host__ __device__ inline int StepCount(int64_t inputs) {
  return static_cast<int>((inputs + kStep - 1) / kStep);
}

// What a kernel needs to know of a product. A tile is 16 rows of the weight: with kSwiGlu 8 of gate and 8 of up.
struct Task {
  const void* x;
  const void* weight;
  const void* bias;
  void* y;
  int64_t rows, inputs, outputs;
};

// The row of the weight that is row i of a tile; -1 past its end.
template <ProductMode M>
__device__ inline int64_t WeightRow(const Task& task, int64_t tile, int i) {
  if constexpr (M == ProductMode::kSwiGlu) {
    const int64_t feature = tile * 8 + i % 8;
    return feature < task.outputs / 2 ? feature + i / 8 * (task.outputs / 2) : -1;
  } else {
    const int64_t output = tile * 16 + i;
    return output < task.outputs ? output : -1;
  }
}

// Takes the sums of rows i and i + 8 of a tile for one row of x.
template <typename T, ProductMode M>
__device__ inline void Finish(const Task& task, int64_t tile, int i, int64_t row, int64_t split, float low,
                              float high) {
  if (row >= task.rows) return;
  const int64_t first = WeightRow<M>(task, tile, i), second = WeightRow<M>(task, tile, i + 8);
  if constexpr (M == ProductMode::kPartial) {
    float* y = static_cast<float*>(task.y) + (split * task.rows + row) * task.outputs;
    if (first >= 0) y[first] = low;
    if (second >= 0) y[second] = high;
  } else {
    const T* bias = static_cast<const T*>(task.bias);
    T* y = static_cast<T*>(task.y);
    if (bias != nullptr && first >= 0) low += ToFloat(bias[first]);
    if (bias != nullptr && second >= 0) high += ToFloat(bias[second]);
    if constexpr (M == ProductMode::kSwiGlu) {
      if (first < 0) return;
      const float gate = Rounded<T>(low), up = Rounded<T>(high);
      y[row * (task.outputs / 2) + first] = FromFloat<T>(Rounded<T>(gate / (1.0F + expf(-gate))) * up);
    } else {
      if (first >= 0) y[row * task.outputs + first] = FromFloat<T>(low);
      if (second >= 0) y[row * task.outputs + second] = FromFloat<T>(high);
    }
  }
}

// The first step of slice `slice` of split `split`.
__device__ inline int SliceBegin(int steps, int split, int splits, int slice) {
  return steps * (split * kSlices + slice) / (splits * kSlices);
}

// ---- bfloat16 ----

// Weights are read once a step: they shall not push what the kernels exchange out of the L1 cache.
__device__ inline uint4 LoadWeights(const __nv_bfloat16* from) {
  uint4 words;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from));
  return words;
}

// Inputs of a row that a lane holds in a step: 8 neighbours, lane % 4 saying which. The first 4 are the lane's in the
// step's first mma, the others in its second.
struct Fragment {
  uint32_t word[4] = {0, 0, 0, 0};
};

__device__ inline Fragment FragmentOf(const uint4& words) {
  return {{words.x, words.y, words.z, words.w}};
}

__device__ inline void Mma(float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                           uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// One step of a 16 x 8 tile: `top` and `bottom` of the weight's rows lane / 4 and 8 below, `x` of row lane / 4.
__device__ inline void AddStep(float (&sum)[4], const Fragment& top, const Fragment& bottom, const Fragment& x) {
  Mma(sum, top.word[0], bottom.word[0], top.word[1], bottom.word[1], x.word[0], x.word[1]);
  Mma(sum, top.word[2], bottom.word[2], top.word[3], bottom.word[3], x.word[2], x.word[3]);
}

// A block: one tile, 8 NT rows, a warp for each slice. Weights go from memory to registers, kDepth steps ahead.
template <ProductMode M, int NT>
__global__ void __launch_bounds__(32 * kSlices) NarrowKernel(Task task) {
  constexpr int kDepth = NT == 4 ? 4 : 8;
  __shared__ float sums[kSlices][NT][32][4];
  const int64_t tile = blockIdx.x, first_row = static_cast<int64_t>(blockIdx.y) * 8 * NT;
  const int split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32, part = lane % 4 * 8;
  const int begin = SliceBegin(steps, split, splits, slice), end = SliceBegin(steps, split, splits, slice + 1);
  LetNextBegin();
  const int64_t weight_rows[2] = {WeightRow<M>(task, tile, lane / 4), WeightRow<M>(task, tile, lane / 4 + 8)};
  uint4 ring[kDepth][2];
  const auto fetch = [&](int slot, int step) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool inside = weight_rows[i] >= 0 && step * kStep + part < task.inputs;
      const auto* const weight = static_cast<const __nv_bfloat16*>(task.weight) + part;
      ring[slot][i] =
          inside ? LoadWeights(weight + weight_rows[i] * task.inputs + step * kStep) : make_uint4(0, 0, 0, 0);
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
    const int64_t row = first_row + n * 8 + lane / 4;
    row_from[n] = row < task.rows ? static_cast<const __nv_bfloat16*>(task.x) + row * task.inputs + part : nullptr;
  }
  float sum[NT][4] = {};
  for (int first = begin; first < end; first += kDepth) {
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const int step = first + i;
      if (step >= end) break;
      const Fragment top = FragmentOf(ring[i][0]), bottom = FragmentOf(ring[i][1]);
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        const bool inside = row_from[n] != nullptr && step * kStep + part < task.inputs;
        AddStep(
            sum[n], top, bottom,
            FragmentOf(inside ? *reinterpret_cast<const uint4*>(row_from[n] + step * kStep) : make_uint4(0, 0, 0, 0)));
      }
      if (step + kDepth < end) fetch(i, step + kDepth);
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
    Finish<__nv_bfloat16, M>(task, tile, from / 4, first_row + n * 8 + from % 4 * 2 + j, split, low, high);
  }
}

// The wide kernel's block: kTileWarps x kRowWarps warps, each of kTiles tiles and 8 kGroups rows.
template <int TileWarps, int RowWarps, int Tiles, int Stages>
struct WideShape {
  static constexpr int kTileWarps = TileWarps, kRowWarps = RowWarps, kTiles = Tiles, kGroups = 4, kStages = Stages;
  static constexpr int kThreads = 32 * kTileWarps * kRowWarps;
  static constexpr int kBlockTiles = kTileWarps * kTiles, kBlockRows = kRowWarps * kGroups * 8;
};
using Wide = WideShape<2, 2, 2, 6>;    // 64 outputs, 64 rows
using Widest = WideShape<2, 4, 4, 3>;  // 128 outputs, 128 rows

__device__ inline void CopyAsync(void* to, const void* from, bool valid) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = valid ? 16 : 0;  // the rest is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
}

// Steps come through shared memory, kStages ahead.
template <ProductMode M, typename Shape>
__global__ void __launch_bounds__(Shape::kThreads) WideKernel(Task task) {
  constexpr int kStages = Shape::kStages, kTiles = Shape::kTiles, kGroups = Shape::kGroups;
  constexpr int kLines = Shape::kThreads / 4;  // that the block copies at a time, four threads a line
  constexpr int kWeightCopies = Shape::kBlockTiles * 16 / kLines, kRowCopies = Shape::kBlockRows / kLines;
  __shared__ uint4 weights[kStages][Shape::kBlockTiles * 16][4];
  __shared__ uint4 inputs[kStages][Shape::kBlockRows][4];
  const int64_t first_tile = static_cast<int64_t>(blockIdx.y) * Shape::kBlockTiles;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * Shape::kBlockRows;
  const int split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tiles_at = warp / Shape::kRowWarps * kTiles, rows_at = warp % Shape::kRowWarps * kGroups * 8;
  const int begin = SliceBegin(steps, split, splits, 0), end = SliceBegin(steps, split, splits, kSlices);
  LetNextBegin();

  // A thread copies the same 8 inputs of a step of the same lines: where they begin is worked out once.
  const int line = threadIdx.x / 4, part = threadIdx.x % 4;
  const __nv_bfloat16 *weight_from[kWeightCopies], *row_from[kRowCopies];
#pragma unroll
  for (int i = 0; i < kWeightCopies; ++i) {
    const int at = i * kLines + line;
    const int64_t row = WeightRow<M>(task, first_tile + at / 16, at % 16);
    const auto* const weight = static_cast<const __nv_bfloat16*>(task.weight) + part * 8;
    weight_from[i] = row >= 0 ? weight + row * task.inputs : nullptr;
  }
#pragma unroll
  for (int i = 0; i < kRowCopies; ++i) {
    const int64_t row = first_row + i * kLines + line;
    const auto* const x = static_cast<const __nv_bfloat16*>(task.x) + part * 8;
    row_from[i] = row < task.rows ? x + row * task.inputs : nullptr;
  }
  const auto copy = [&](uint4* to, const __nv_bfloat16* from, const void* any, int step) {
    const bool valid = from != nullptr && step * kStep + part * 8 < task.inputs;
    CopyAsync(to, valid ? static_cast<const void*>(from + step * kStep) : any, valid);
  };
  const auto fetch_weights = [&](int step) {
    if (step >= end) return;
#pragma unroll
    for (int i = 0; i < kWeightCopies; ++i) {
      copy(&weights[(step - begin) % kStages][i * kLines + line][part], weight_from[i], task.weight, step);
    }
  };
  const auto fetch_rows = [&](int step) {
    if (step >= end) return;
#pragma unroll
    for (int i = 0; i < kRowCopies; ++i) {
      copy(&inputs[(step - begin) % kStages][i * kLines + line][part], row_from[i], task.x, step);
    }
  };
  const auto commit = [] { asm volatile("cp.async.commit_group;" ::: "memory"); };

  float total[kTiles][kGroups][4] = {}, sum[kTiles][kGroups][4] = {};
  int slice = 0;
  const auto end_slice = [&] {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kGroups; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          total[m][n][i] += sum[m][n][i];
          sum[m][n][i] = 0;
        }
      }
    }
    ++slice;
  };

  for (int stage = 0; stage < kStages - 1; ++stage) fetch_weights(begin + stage);
  WaitForPrevious();
  for (int stage = 0; stage < kStages - 1; ++stage) {
    fetch_rows(begin + stage);
    commit();  // with the first, all weights so far
  }
  int slice_end = SliceBegin(steps, split, splits, 1);  // a division: not for each step
  for (int step = begin; step < end; ++step) {
    while (step == slice_end) {
      end_slice();
      slice_end = SliceBegin(steps, split, splits, slice + 1);
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    fetch_weights(step + kStages - 1);  // into what the step before read
    fetch_rows(step + kStages - 1);
    commit();
    const int stage = (step - begin) % kStages;
    Fragment x[kGroups];
#pragma unroll
    for (int n = 0; n < kGroups; ++n) x[n] = FragmentOf(inputs[stage][rows_at + n * 8 + lane / 4][lane % 4]);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const int at = (tiles_at + m) * 16 + lane / 4;
      const Fragment top = FragmentOf(weights[stage][at][lane % 4]);
      const Fragment bottom = FragmentOf(weights[stage][at + 8][lane % 4]);
#pragma unroll
      for (int n = 0; n < kGroups; ++n) AddStep(sum[m][n], top, bottom, x[n]);
    }
  }
  while (slice < kSlices) end_slice();
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kGroups; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        Finish<__nv_bfloat16, M>(task, first_tile + tiles_at + m, lane / 4,
                                 first_row + rows_at + n * 8 + lane % 4 * 2 + j, split, total[m][n][j],
                                 total[m][n][j + 2]);
      }
    }
  }
}

// ---- float32 ----

// A block: one tile, 8 rows; a thread takes two outputs of a row in one slice.
template <ProductMode M>
__global__ void __launch_bounds__(64 * kSlices) FloatKernel(Task task) {
  __shared__ float sums[kSlices][64][2];
  LetNextBegin();
  WaitForPrevious();
  const int64_t tile = blockIdx.x;
  const int split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int slice = threadIdx.x / 64, item = threadIdx.x % 64, output = item % 8;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * 8 + item / 8;
  const int64_t top_row = WeightRow<M>(task, tile, output), bottom_row = WeightRow<M>(task, tile, output + 8);
  const int64_t begin = int64_t{SliceBegin(steps, split, splits, slice)} * kStep;
  const int64_t end = min(task.inputs, int64_t{SliceBegin(steps, split, splits, slice + 1)} * kStep);
  float low = 0, high = 0;
  if (row < task.rows) {
    const float* x = static_cast<const float*>(task.x) + row * task.inputs;
    const float* weight = static_cast<const float*>(task.weight);
    const float* top = weight + max(top_row, int64_t{0}) * task.inputs;
    const float* bottom = weight + max(bottom_row, int64_t{0}) * task.inputs;
    for (int64_t column = begin; column < end; column += 4) {
      const auto in = Lanes<float, 4>::Load(x + column);
      const auto a = Lanes<float, 4>::Load(top + column), b = Lanes<float, 4>::Load(bottom + column);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        low = fmaf(in.at[i], a.at[i], low);
        high = fmaf(in.at[i], b.at[i], high);
      }
    }
  }
  sums[slice][item][0] = low;
  sums[slice][item][1] = high;
  __syncthreads();
  if (slice != 0) return;
  low = high = 0;
#pragma unroll
  for (int s = 0; s < kSlices; ++s) {
    low += sums[s][item][0];
    high += sums[s][item][1];
  }
  Finish<float, M>(task, tile, output, row, split, low, high);
}

// Rows from which the wide kernel is the better one, and that of large tiles.
constexpr int64_t kWideFrom = 48, kWidestFrom = 512;

template <ProductMode M>
void Launch(Element type, const Task& task, cudaStream_t stream) {
  const int64_t tiles = M == ProductMode::kSwiGlu ? (task.outputs / 2 + 7) / 8 : (task.outputs + 15) / 16;
  const auto splits = static_cast<unsigned>(M == ProductMode::kPartial ? ProductSplits(task.inputs, task.outputs) : 1);
  const auto grid = [&](int64_t rows) { return dim3(static_cast<unsigned>(tiles), Blocks(task.rows, rows), splits); };
  const auto wide = [&]<typename Shape>(Shape) {
    LaunchOverlapping(WideKernel<M, Shape>,
                      dim3(Blocks(task.rows, Shape::kBlockRows), Blocks(tiles, Shape::kBlockTiles), splits),
                      Shape::kThreads, stream, task);
  };
  if (type == Element::kFloat32) {
    LaunchOverlapping(FloatKernel<M>, grid(8), 64 * kSlices, stream, task);
  } else if (task.rows >= kWidestFrom) {
    wide(Widest());
  } else if (task.rows >= kWideFrom) {
    wide(Wide());
  } else if (task.rows <= 8) {
    LaunchOverlapping(NarrowKernel<M, 1>, grid(8), 32 * kSlices, stream, task);
  } else if (task.rows <= 16) {
    LaunchOverlapping(NarrowKernel<M, 2>, grid(16), 32 * kSlices, stream, task);
  } else {
    LaunchOverlapping(NarrowKernel<M, 4>, grid(32), 32 * kSlices, stream, task);
  }
}

}  // namespace

int64_t ProductSplits(int64_t inputs, int64_t outputs) {
  const int64_t tiles = (outputs + 15) / 16;
  const int64_t most = std::max<int64_t>(1, StepCount(inputs) / (2 * kSlices));
  return std::clamp<int64_t>(kBlocksWanted / tiles, 1, std::min<int64_t>(8, most));
}

void Product(Element type, ProductMode mode, const void* x, const void* weight, const void* bias, int64_t row_count,
             int64_t inputs, int64_t outputs, void* y, void* stream) {
  const Task task = {x, weight, bias, y, row_count, inputs, outputs};
  const auto queue = static_cast<cudaStream_t>(stream);
  if (mode == ProductMode::kPartial) {
    Launch<ProductMode::kPartial>(type, task, queue);
  } else if (mode == ProductMode::kSwiGlu) {
    Launch<ProductMode::kSwiGlu>(type, task, queue);
  } else {
    Launch<ProductMode::kPlain>(type, task, queue);
  }
}

}  // namespace kgrpo::policy
