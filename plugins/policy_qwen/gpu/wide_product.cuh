// Products of many rows, in bfloat16. The step's rows are the instruction's 16, the weight's rows its 8: so a row's
// parts are arranged once and serve all rows of the weight. Used by product.cu.
#pragma once
#include "policy_qwen/gpu/overlap.cuh"
#include "policy_qwen/gpu/product.cuh"

namespace kgrpo::policy {

// Keeps a value in its register: the compiler would otherwise compute it again at each use.
template <typename V>
__device__ inline void Keep(V& value) {
  if constexpr (sizeof(V) == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
}

// Copies steps from memory to stages of shared memory, with `kThreads` threads. Each thread copies the same part of the
// same lines of every step. A line is a row of the weight or of x.
template <int kLineCount, int kThreads>
class LineCopies {
 public:
  // row_of(i): the row of line i in `array`, -1 for none, whose line is filled with zeros.
  template <typename RowOfLine>
  __device__ LineCopies(const void* array, int inputs, int thread, RowOfLine row_of)
      : first_(thread / 4), offset_(first_ * 64 + thread % 4 * 16) {
    const int part = thread % 4 * 8;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = Covers(i) ? row_of(first_ + i * kLines) : -1;
      from_[i] = RowOf(static_cast<const __nv_bfloat16*>(array), max(row, 0), inputs) + part;
      steps_[i] = row < 0 ? 0 : (inputs - part + kStep - 1) / kStep;
      Keep(from_[i]);
      Keep(steps_[i]);
    }
  }

  // `stage`: the first line's place in shared memory.
  __device__ void Fetch(uint32_t stage, int step) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (!Covers(i)) continue;
      const int bytes = step < steps_[i] ? 16 : 0;  // the rest of the 16 is filled with zeros
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(stage + offset_ + i * kLines * 64),
                   "l"(from_[i] + step * kStep), "r"(bytes)
                   : "memory");
    }
  }

 private:
  static constexpr int kLines = kThreads / 4, kCopies = (kLineCount + kLines - 1) / kLines;

  __device__ bool Covers(int i) const {
    return (i + 1) * kLines <= kLineCount || first_ + i * kLines < kLineCount;
  }

  const int first_, offset_;
  const __nv_bfloat16* from_[kCopies];
  int steps_[kCopies];  // number of steps that have data to copy
};

__device__ inline void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `kPending` groups of copies of this thread are in flight.
template <int kPending>
__device__ inline void AwaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// A ring of kStages steps in shared memory, for `kThreads` threads: kWeightLines lines of the weight, then kRowLines of
// x. A step's place is free for the one kStages later once all threads have read it.
template <int kWeightLines, int kRowLines, int kThreads, int kStages>
class StepRing {
 public:
  using Line = uint4[4];
  static constexpr int kLines = kWeightLines + kRowLines, kBytes = kStages * kLines * 64;

  // `memory`: kBytes of shared memory. The ring's steps are `begin` to `end`; weight_row and x_row as LineCopies'.
  template <typename WeightRowOf, typename XRowOf>
  __device__ StepRing(const void* memory, const ProductTask& task, int thread, uint32_t begin, uint32_t end,
                      WeightRowOf weight_row, XRowOf x_row)
      : stages_(static_cast<const Line*>(memory)),
        at_(static_cast<uint32_t>(__cvta_generic_to_shared(memory))),
        begin_(begin),
        end_(end),
        weights_(task.weight, task.inputs, thread, weight_row),
        rows_(task.x, task.inputs, thread, x_row) {}

  // Begins the copies of the first steps. Weights, which no kernel writes, come before the wait for the previous
  // kernel.
  __device__ void Begin() const {
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) FetchWeights(i);
    WaitForPrevious();
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) {
      FetchRows(i);
      CommitCopies();  // with the first, all weights so far
    }
  }

  // Returns the i-th step's lines, once `barrier` has made them complete for all threads. Begins the copy of a later
  // step into the place of step i - 1.
  template <typename Barrier>
  __device__ const Line* Next(uint32_t i, Barrier barrier) const {
    AwaitCopies<kStages - 2>();
    barrier();
    if (const uint32_t ahead = i + kStages - 1; begin_ + ahead < end_) {
      const uint32_t to = at_ + ahead % kStages * kLines * 64;
      weights_.Fetch(to, begin_ + ahead);
      rows_.Fetch(to + kWeightLines * 64, begin_ + ahead);
    }
    CommitCopies();
    return stages_ + i % kStages * kLines;
  }

 private:
  __device__ void FetchWeights(uint32_t i) const {
    if (begin_ + i < end_) weights_.Fetch(at_ + i % kStages * kLines * 64, begin_ + i);
  }
  __device__ void FetchRows(uint32_t i) const {
    if (begin_ + i < end_) rows_.Fetch(at_ + (i % kStages * kLines + kWeightLines) * 64, begin_ + i);
  }

  const Line* const stages_;
  const uint32_t at_, begin_, end_;
  const LineCopies<kWeightLines, kThreads> weights_;
  const LineCopies<kRowLines, kThreads> rows_;
};

// A warp's part of a step: kRowTiles x 16 rows of x by kTiles tiles of the weight.
template <int kRowTiles, int kTiles>
struct WarpSums {
  float at[kRowTiles][2 * kTiles][4] = {};

  // x: the warp's lines of x; weight: its lines of the weight.
  __device__ void Add(const uint4 (*x)[4], const uint4 (*weight)[4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    uint32_t a[kRowTiles][8];  // of the step's two instructions
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n) {
      const uint4 top = x[n * 16 + g][t], bottom = x[n * 16 + 8 + g][t];
      const uint32_t words[8] = {top.x, bottom.x, top.y, bottom.y, top.z, bottom.z, top.w, bottom.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        a[n][i] = words[i];
        Keep(a[n][i]);
      }
    }
#pragma unroll
    for (int m = 0; m < 2 * kTiles; ++m) {
      const uint4 b = weight[m * 8 + g][t];
#pragma unroll
      for (int n = 0; n < kRowTiles; ++n) {
        Mma(at[n][m], a[n][0], a[n][1], a[n][2], a[n][3], b.x, b.y);
        Mma(at[n][m], a[n][4], a[n][5], a[n][6], a[n][7], b.z, b.w);
      }
    }
  }
};

// ---- some dozens of rows ----

// 64 rows and T tiles a block, four warps for each slice, which take 16 rows each. The slices of a split go side by
// side, so that a block waits for a fourth of the steps; each has kStages steps of its own in shared memory, where
// their sums meet at the end.
inline constexpr int kWideRows = 64, kWideGroup = 128;  // rows of a block, threads of a slice

template <int T>
struct WideBlock {
  using Ring = StepRing<16 * T, kWideRows, kWideGroup, 4>;
  static constexpr int kSumWidth = 16 * T + 4, kSumBytes = kWideRows * kSumWidth * 4;
  static constexpr int kBytes = kSlices * (Ring::kBytes > kSumBytes ? Ring::kBytes : kSumBytes);
};

template <ProductMode M, int T>
__global__ void __launch_bounds__(kSlices* kWideGroup) WideKernel(ProductTask task) {
  using Block = WideBlock<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  const int first_tile = blockIdx.y * T, first_row = blockIdx.x * kWideRows;
  const int split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int slice = threadIdx.x / kWideGroup, thread = threadIdx.x % kWideGroup, lane = threadIdx.x % 32;
  const int rows_at = thread / 32 * 16;
  const uint32_t begin = SliceBegin(steps, split, splits, slice), end = SliceBegin(steps, split, splits, slice + 1);
  LetNextBegin();
  const typename Block::Ring ring(
      memory + slice * Block::Ring::kBytes, task, thread, begin, end,
      [&](int line) { return WeightRow<M>(task, first_tile + line / 16, line % 16); },
      [&](int line) { return first_row + line < task.rows ? first_row + line : -1; });
  ring.Begin();
  WarpSums<1, T> sums;
  for (uint32_t i = 0; i < end - begin; ++i) {
    const auto* const stage = ring.Next(i, [&] {
      asm volatile("bar.sync %0, %1;" ::"r"(slice + 1), "n"(kWideGroup) : "memory");
    });
    sums.Add(stage + 16 * T + rows_at, stage);
  }
  __syncthreads();
  float(*const meeting)[kWideRows][Block::kSumWidth] = reinterpret_cast<float(*)[kWideRows][Block::kSumWidth]>(memory);
#pragma unroll
  for (int m = 0; m < 2 * T; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* const to = &meeting[slice][rows_at + half * 8 + lane / 4][m * 8 + lane % 4 * 2];
      *reinterpret_cast<float2*>(to) = make_float2(sums.at[0][m][half * 2], sums.at[0][m][half * 2 + 1]);
    }
  }
  __syncthreads();
  for (int item = threadIdx.x; item < 4 * T * kWideRows; item += kSlices * kWideGroup) {
    const int i = item % 4 * 2, m = item / 4 % T, row = item / (4 * T);
    float2 low = make_float2(0, 0), high = low;
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      const float* const from = &meeting[s][row][m * 16 + i];
      const float2 first = *reinterpret_cast<const float2*>(from), second = *reinterpret_cast<const float2*>(from + 8);
      low.x += first.x;
      low.y += first.y;
      high.x += second.x;
      high.y += second.y;
    }
    FinishPair<__nv_bfloat16, M>(task, first_tile + m, i, first_row + row, split, low, high);
  }
}

// ---- hundreds of rows ----

// 64 rows and four tiles a block, a warp for two tiles and 32 rows. The slices of a split follow one another.
struct WidestBlock {
  static constexpr int kTiles = 2, kRowTiles = 2;  // of a warp; four warps, two by two
  static constexpr int kThreads = 128, kBlockTiles = 2 * kTiles, kBlockRows = 2 * kRowTiles * 16;
  using Ring = StepRing<kBlockTiles * 16, kBlockRows, kThreads, 6>;
  static constexpr int kBytes = Ring::kBytes;
};

template <ProductMode M>
__global__ void __launch_bounds__(WidestBlock::kThreads) WidestKernel(ProductTask task) {
  using Block = WidestBlock;
  constexpr int kTiles = Block::kTiles, kRowTiles = Block::kRowTiles, kWeightLines = Block::kBlockTiles * 16;
  extern __shared__ __align__(16) unsigned char memory[];
  const int first_tile = blockIdx.y * Block::kBlockTiles, first_row = blockIdx.x * Block::kBlockRows;
  const int split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tiles_at = warp / 2 * kTiles, rows_at = warp % 2 * kRowTiles * 16;
  const uint32_t begin = SliceBegin(steps, split, splits, 0), end = SliceBegin(steps, split, splits, kSlices);
  LetNextBegin();
  const Block::Ring ring(
      memory, task, threadIdx.x, begin, end,
      [&](int line) { return WeightRow<M>(task, first_tile + line / 16, line % 16); },
      [&](int line) { return first_row + line < task.rows ? first_row + line : -1; });
  ring.Begin();
  WarpSums<kRowTiles, kTiles> total, sums;
  uint32_t i = 0;
  for (int slice = 0; slice < kSlices; ++slice) {
    for (const uint32_t slice_end = SliceBegin(steps, split, splits, slice + 1) - begin; i < slice_end; ++i) {
      const auto* const stage = ring.Next(i, [] { __syncthreads(); });
      sums.Add(stage + kWeightLines + rows_at, stage + tiles_at * 16);
    }
#pragma unroll
    for (int n = 0; n < kRowTiles; ++n) {
#pragma unroll
      for (int m = 0; m < 2 * kTiles; ++m) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          total.at[n][m][k] += sums.at[n][m][k];
          sums.at[n][m][k] = 0;
        }
      }
    }
  }
#pragma unroll
  for (int n = 0; n < kRowTiles; ++n) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float(&low)[4] = total.at[n][2 * m], (&high)[4] = total.at[n][2 * m + 1];
        FinishPair<__nv_bfloat16, M>(
            task, first_tile + tiles_at + m, lane % 4 * 2, first_row + rows_at + n * 16 + half * 8 + lane / 4, split,
            make_float2(low[half * 2], low[half * 2 + 1]), make_float2(high[half * 2], high[half * 2 + 1]));
      }
    }
  }
}

}  // namespace kgrpo::policy
