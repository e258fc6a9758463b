// problem: problems/softmax_temperature
// style: tiles of eight lanes a row (cooperative groups), the bias in shared memory, exponentials kept in the output
// cuda: correct
// sim: correct
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void Softmax(const float* x, const float* bias, float* out, int rows, int cols, float heat) {
  extern __shared__ float heated_bias[];
  const cg::thread_block block = cg::this_thread_block();
  for (int c = block.thread_rank(); c < cols; c += block.size()) heated_bias[c] = heat * bias[c];
  block.sync();
  const auto tile = cg::tiled_partition<8>(block);
  const int row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
  if (row >= rows) return;
  const float* own = x + static_cast<size_t>(row) * cols;
  float* out_own = out + static_cast<size_t>(row) * cols;
  float maximum = -INFINITY;
  for (int c = tile.thread_rank(); c < cols; c += tile.size()) {
    maximum = fmaxf(maximum, fmaf(heat, own[c], heated_bias[c]));
  }
  maximum = cg::reduce(tile, maximum, cg::greater<float>());
  float sum = 0.0f;
  for (int c = tile.thread_rank(); c < cols; c += tile.size()) {
    sum += out_own[c] = __expf(fmaf(heat, own[c], heated_bias[c]) - maximum);
  }
  sum = cg::reduce(tile, sum, cg::plus<float>());
  for (int c = tile.thread_rank(); c < cols; c += tile.size()) out_own[c] = __fdividef(out_own[c], sum);
}

extern "C" void launch(const float* x, const float* bias, float* out, int rows, int cols, float heat) {
  Softmax<<<(rows + 15) / 16, 128, cols * sizeof(float)>>>(x, bias, out, rows, cols, heat);
}
