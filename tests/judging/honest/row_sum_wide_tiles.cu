// problem: tests/evaluator/problems/row_sum
// style: a tile of two warps of cooperative groups, which meet in the shared memory reserved for them
// cuda: correct
// sim: correct
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void Sum(const float* x, float* out, int rows) {
  __shared__ cg::block_tile_memory<256> memory;
  const auto block = cg::this_thread_block(memory);
  const auto tile = cg::tiled_partition<64>(block);
  const int row = blockIdx.x * 4 + tile.meta_group_rank();
  const float v = row < rows ? x[row * 64 + tile.thread_rank()] : 0.0f;
  const float sum = cg::reduce(tile, v, cg::plus<float>());
  if (row < rows && tile.thread_rank() == 0) out[row] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<(rows + 3) / 4, 256>>>(x, out, rows); }
