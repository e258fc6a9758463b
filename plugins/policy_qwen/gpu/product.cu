// Products of rows with a weight: kernels.h. bfloat16 runs on the tensor cores, float32 in plain multiply-adds.
#include <cuda_runtime.h>

#include <algorithm>

#include "policy_qwen/gpu/launch.cuh"
#include "policy_qwen/gpu/narrow_product.cuh"
#include "policy_qwen/gpu/overlap.cuh"
#include "policy_qwen/gpu/product.cuh"
#include "policy_qwen/gpu/wide_product.cuh"

namespace kgrpo::policy {
namespace {

// A block: one tile, 8 rows; a thread takes two outputs of a row in one slice.
template <ProductMode M>
__global__ void __launch_bounds__(64 * kSlices) FloatKernel(ProductTask task) {
  __shared__ float sums[kSlices][64][2];
  LetNextBegin();
  WaitForPrevious();
  const int tile = blockIdx.y;
  const int split = blockIdx.z, splits = gridDim.z, steps = StepCount(task.inputs);
  const int slice = threadIdx.x / 64, item = threadIdx.x % 64, output = item % 8;
  const int row = blockIdx.x * 8 + item / 8;
  const int top_row = WeightRow<M>(task, tile, output), bottom_row = WeightRow<M>(task, tile, output + 8);
  const int begin = SliceBegin(steps, split, splits, slice) * kStep;
  const int end = min(task.inputs, SliceBegin(steps, split, splits, slice + 1) * kStep);
  float low = 0, high = 0;
  if (row < task.rows) {
    const float* x = RowOf(static_cast<const float*>(task.x), row, task.inputs);
    const float* weight = static_cast<const float*>(task.weight);
    const float* top = RowOf(weight, max(top_row, 0), task.inputs);
    const float* bottom = RowOf(weight, max(bottom_row, 0), task.inputs);
    for (int column = begin; column < end; column += 4) {
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
  Finish<float, M, 1>(task, tile, output, row, split, {{low}}, {{high}});
}

// The narrow kernel is the best up to kNarrowRows rows. WidestKernel is the best from kWidestPartial rows on in mode
// kPartial, and from kWidest rows on in the other modes.
constexpr int kNarrowRows = 32, kWidestPartial = 512, kWidest = 200;
constexpr int kLargeBlocksWanted = 100;  // for blocks of 5 tiles; a multiprocessor has room for one

// Bytes of shared memory that a block may ask for on the current device: 227 KiB on an H100, 99 on an L4.
int SharedMemoryLimit() {
  int device = 0, bytes = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess;
  return known ? bytes : 0;
}

int64_t ProductSplits(int64_t inputs, int64_t outputs) {
  const int64_t tiles = (outputs + 15) / 16;
  const int64_t most = std::max<int64_t>(1, StepCount(inputs) / (2 * kSlices));
  return std::clamp<int64_t>(kBlocksWanted / tiles, 1, std::min<int64_t>(kMaxSplits, most));
}

template <ProductMode M>
void Launch(Element type, const ProductTask& task, cudaStream_t stream) {
  const int tiles = M == ProductMode::kSwiGlu ? (task.outputs / 2 + 7) / 8 : (task.outputs + 15) / 16;
  const auto splits = static_cast<unsigned>(M == ProductMode::kPartial ? ProductSplits(task.inputs, task.outputs) : 1);
  const auto narrow = [&](auto kernel, int rows, int threads) {
    LaunchOverlapping(kernel, dim3(Blocks(task.rows, rows), Blocks(tiles, 1), splits), static_cast<unsigned>(threads),
                      stream, task);
  };
  const auto wide_grid = [&](int rows, int block_tiles) {
    return dim3(Blocks(task.rows, rows), Blocks(tiles, block_tiles), splits);
  };
  const auto launch = [&](auto kernel, dim3 grid, int threads, int bytes) {
    static_cast<void>(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    QueueKernel(kernel, grid, static_cast<unsigned>(threads), stream, true, static_cast<unsigned>(bytes), task);
  };
  const auto wide = [&]<int T>() {
    launch(WideKernel<M, T>, wide_grid(kWideRows, T), kSlices * kWideGroup, WideBlock<T>::kBytes);
  };
  // True if blocks of T tiles are enough in number and fit in shared memory. The order of sums is the same for each T,
  // so the choice may differ by device.
  const auto suits = [&]<int T>(int64_t blocks_wanted) {
    const dim3 grid = wide_grid(kWideRows, T);
    return int64_t{grid.x} * grid.y * grid.z >= blocks_wanted && WideBlock<T>::kBytes <= SharedMemoryLimit();
  };
  if (type == Element::kFloat32) {
    narrow(FloatKernel<M>, 8, 64 * kSlices);
  } else if (task.rows <= 8) {
    narrow(NarrowKernel<M, 1>, 8, 32 * kSlices);
  } else if (task.rows <= 16) {
    narrow(NarrowKernel<M, 2>, 16, 32 * kSlices);
  } else if (task.rows <= kNarrowRows) {
    narrow(NarrowKernel<M, 4>, 32, 32 * kSlices);
  } else if (task.rows >= (M == ProductMode::kPartial ? kWidestPartial : kWidest)) {
    launch(WidestKernel<M>, wide_grid(WidestBlock::kBlockRows, WidestBlock::kBlockTiles), WidestBlock::kThreads,
           WidestBlock::kBytes);
  } else if (M != ProductMode::kPartial && suits.template operator()<5>(kLargeBlocksWanted)) {
    // The largest blocks that still occupy most multiprocessors: the fewer blocks read a row, the better.
    wide.template operator()<5>();
  } else if (suits.template operator()<3>(kBlocksWanted)) {
    wide.template operator()<3>();
  } else {
    wide.template operator()<1>();
  }
}

void Product(Element type, ProductMode mode, const void* x, const void* weight, const void* bias, int64_t row_count,
             int64_t inputs, int64_t outputs, void* y, GpuStream stream) {
  const ProductTask task = {
      x, weight, bias, y, static_cast<int>(row_count), static_cast<int>(inputs), static_cast<int>(outputs)};
  const auto queue = StreamOf(stream);
  if (mode == ProductMode::kPartial) {
    Launch<ProductMode::kPartial>(type, task, queue);
  } else if (mode == ProductMode::kSwiGlu) {
    Launch<ProductMode::kSwiGlu>(type, task, queue);
  } else {
    Launch<ProductMode::kPlain>(type, task, queue);
  }
}

}  // namespace

void SetProducts(GpuKernels& table) {
  table.product_splits = ProductSplits;
  KGRPO_SET_KERNEL(table, product, Product);
}

}  // namespace kgrpo::policy
