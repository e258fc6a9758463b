// Products of rows with a weight: kernels.h. bfloat16 runs on the tensor cores (mma.sync m16n8k16, weights as the 16
// rows, the step's rows as the 8 columns), float32 in plain multiply-adds.
//
// The order of a sum: the inputs are cut into steps of 32 and the steps into kSlices x splits slices; a slice adds step
// after step, a split adds its kSlices slices in order, whoever reads the result adds the splits in order. All of that
// follows from the weight's shape. The narrow kernel gives each slice to a warp, the wide one goes through the slices
// of a split one after the other: the same sums, so that rows may move from one to the other without a changed bit.
#include <cuda_runtime.h>

#include <algorithm>

#include "policy_qwen/gpu_generation/launchers.h"
#include "policy_qwen/gpu_training/vectors.cuh"

namespace kgrpo::policy {
namespace {

constexpr int kSlices = 4;          // of a split: the warps of a narrow block
constexpr int kStep = 32;           // inputs
constexpr int kBlocksWanted = 264;  // two for each multiprocessor of an H100

__host__ __device__ inline int64_t StepCount(int64_t inputs) {
  return (inputs + kStep - 1) / kStep;
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

// The steps of slice `slice` of split `split`: [begin, end).
__device__ inline int64_t SliceBegin(int64_t steps, int64_t split, int64_t splits, int slice) {
  return steps * (split * kSlices + slice) / (splits * kSlices);
}

// ---- bfloat16 ----

// Inputs of a row that a lane holds in a step: 8 neighbours, lane % 4 saying which. The first 4 are the lane's in the
// step's first mma, the others in its second.
struct Fragment {
  uint32_t word[4] = {0, 0, 0, 0};
};

__device__ inline Fragment LoadFragment(const void* matrix, int64_t row, int64_t inputs, int64_t column) {
  Fragment fragment;
  if (row >= 0 && column < inputs) {
    const uint4 words =
        *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(matrix) + row * inputs + column);
    fragment.word[0] = words.x;
    fragment.word[1] = words.y;
    fragment.word[2] = words.z;
    fragment.word[3] = words.w;
  }
  return fragment;
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

// A block: one tile, 8 NT rows, a warp for each slice.
template <ProductMode M, int NT>
__global__ void __launch_bounds__(32 * kSlices) NarrowKernel(Task task) {
  __shared__ float sums[kSlices][NT][32][4];
  const int64_t tile = blockIdx.x, first_row = static_cast<int64_t>(blockIdx.y) * 8 * NT;
  const int64_t split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  const int64_t top_row = WeightRow<M>(task, tile, lane / 4), bottom_row = WeightRow<M>(task, tile, lane / 4 + 8);
  float sum[NT][4] = {};
  const int64_t end = SliceBegin(steps, split, splits, slice + 1);
#pragma unroll 4
  for (int64_t step = SliceBegin(steps, split, splits, slice); step < end; ++step) {
    const int64_t column = step * kStep + lane % 4 * 8;
    const Fragment top = LoadFragment(task.weight, top_row, task.inputs, column);
    const Fragment bottom = LoadFragment(task.weight, bottom_row, task.inputs, column);
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      const int64_t row = first_row + n * 8 + lane / 4;
      AddStep(sum[n], top, bottom, LoadFragment(task.x, row < task.rows ? row : -1, task.inputs, column));
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

constexpr int kWideTiles = 4, kWideRows = 64, kStages = 4;

__device__ inline void CopyAsync(void* to, const void* from, bool valid) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = valid ? 16 : 0;  // the rest is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
}

// A block: four tiles, 64 rows; a warp takes two tiles and 32 rows. Steps come through shared memory, kStages ahead.
template <ProductMode M>
__global__ void __launch_bounds__(128) WideKernel(Task task) {
  __shared__ uint4 weights[kStages][kWideTiles * 16][4];
  __shared__ uint4 inputs[kStages][kWideRows][4];
  const int64_t first_tile = static_cast<int64_t>(blockIdx.y) * kWideTiles;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kWideRows;
  const int64_t split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tiles_at = warp / 2 * 2, rows_at = warp % 2 * 32;
  const int64_t begin = SliceBegin(steps, split, splits, 0), end = SliceBegin(steps, split, splits, kSlices);

  // A thread copies the same 8 inputs of a step of two rows of each: where they begin is worked out once.
  const int part = threadIdx.x % 4;
  const __nv_bfloat16 *weight_from[2], *row_from[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int at = i * 32 + threadIdx.x / 4;
    const int64_t weight_row = WeightRow<M>(task, first_tile + at / 16, at % 16), row = first_row + at;
    const auto* const weight = static_cast<const __nv_bfloat16*>(task.weight) + part * 8;
    const auto* const x = static_cast<const __nv_bfloat16*>(task.x) + part * 8;
    weight_from[i] = weight_row >= 0 ? weight + weight_row * task.inputs : nullptr;
    row_from[i] = row < task.rows ? x + row * task.inputs : nullptr;
  }
  const auto fetch = [&](int64_t step) {
    if (step < end) {
      const int stage = static_cast<int>(step - begin) % kStages;
      const bool inside = step * kStep + part * 8 < task.inputs;
      const auto copy = [&](uint4* to, const __nv_bfloat16* from, const void* any) {
        const bool valid = inside && from != nullptr;
        CopyAsync(to, valid ? static_cast<const void*>(from + step * kStep) : any, valid);
      };
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = i * 32 + threadIdx.x / 4;
        copy(&weights[stage][at][part], weight_from[i], task.weight);
        copy(&inputs[stage][at][part], row_from[i], task.x);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  float total[2][4][4] = {}, sum[2][4][4] = {};
  int slice = 0;
  const auto end_slice = [&] {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          total[m][n][i] += sum[m][n][i];
          sum[m][n][i] = 0;
        }
      }
    }
    ++slice;
  };
  const auto fragment_of = [&](const uint4& words) {
    Fragment fragment;
    fragment.word[0] = words.x;
    fragment.word[1] = words.y;
    fragment.word[2] = words.z;
    fragment.word[3] = words.w;
    return fragment;
  };

  for (int stage = 0; stage < kStages - 1; ++stage) fetch(begin + stage);
  int64_t slice_end = SliceBegin(steps, split, splits, 1);  // a division: not for each step
  for (int64_t step = begin; step < end; ++step) {
    while (step == slice_end) {
      end_slice();
      slice_end = SliceBegin(steps, split, splits, slice + 1);
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    fetch(step + kStages - 1);  // into what the step before read
    const int stage = static_cast<int>(step - begin) % kStages;
    Fragment x[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) x[n] = fragment_of(inputs[stage][rows_at + n * 8 + lane / 4][lane % 4]);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const int at = (tiles_at + m) * 16 + lane / 4;
      const Fragment top = fragment_of(weights[stage][at][lane % 4]);
      const Fragment bottom = fragment_of(weights[stage][at + 8][lane % 4]);
#pragma unroll
      for (int n = 0; n < 4; ++n) AddStep(sum[m][n], top, bottom, x[n]);
    }
  }
  while (slice < kSlices) end_slice();
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
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
  const int64_t tile = blockIdx.x, split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int slice = threadIdx.x / 64, item = threadIdx.x % 64, output = item % 8;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * 8 + item / 8;
  const int64_t top_row = WeightRow<M>(task, tile, output), bottom_row = WeightRow<M>(task, tile, output + 8);
  const int64_t begin = SliceBegin(steps, split, splits, slice) * kStep;
  const int64_t end = min(task.inputs, SliceBegin(steps, split, splits, slice + 1) * kStep);
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

// Rows from which the wide kernel is the better one.
constexpr int64_t kWideFrom = 48;

template <ProductMode M>
void Launch(Element type, const Task& task, cudaStream_t stream) {
  const int64_t tiles = M == ProductMode::kSwiGlu ? (task.outputs / 2 + 7) / 8 : (task.outputs + 15) / 16;
  const auto splits = static_cast<unsigned>(M == ProductMode::kPartial ? ProductSplits(task.inputs, task.outputs) : 1);
  const auto grid = [&](int64_t rows) { return dim3(static_cast<unsigned>(tiles), Blocks(task.rows, rows), splits); };
  if (type == Element::kFloat32) {
    FloatKernel<M><<<grid(8), 64 * kSlices, 0, stream>>>(task);
  } else if (task.rows >= kWideFrom) {
    WideKernel<M><<<dim3(Blocks(task.rows, kWideRows), Blocks(tiles, kWideTiles), splits), 128, 0, stream>>>(task);
  } else if (task.rows <= 8) {
    NarrowKernel<M, 1><<<grid(8), 32 * kSlices, 0, stream>>>(task);
  } else if (task.rows <= 16) {
    NarrowKernel<M, 2><<<grid(16), 32 * kSlices, 0, stream>>>(task);
  } else {
    NarrowKernel<M, 4><<<grid(32), 32 * kSlices, 0, stream>>>(task);
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
