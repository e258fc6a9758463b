// problem: problems/log_softmax_long
// style: a block a row with cooperative groups' tiles, blocks of 224, exponentials in base two
// cuda: correct
// sim: correct
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

template <typename T, typename Operation>
__device__ T BlockReduce(const cg::thread_block& block, T value, Operation operation) {
  __shared__ T of_warp[32];
  const auto warp = cg::tiled_partition<32>(block);
  value = cg::reduce(warp, value, operation);
  if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = value;
  block.sync();
  if (warp.meta_group_rank() == 0) {
    const unsigned source = min(warp.thread_rank(), warp.meta_group_size() - 1);
    value = of_warp[source];
    // Lanes beyond the last warp's repeat its value, which only a maximum would not mind.
    T total = of_warp[0];
    for (unsigned w = 1; w < warp.meta_group_size(); ++w) total = operation(total, warp.shfl(value, w));
    if (warp.thread_rank() == 0) of_warp[0] = total;
  }
  block.sync();
  const T result = of_warp[0];
  block.sync();
  return result;
}

__global__ void LogSoftmax(const float* x, float* out, int cols) {
  const cg::thread_block block = cg::this_thread_block();
  const size_t first = static_cast<size_t>(block.group_index().x) * cols;
  float maximum = -INFINITY;
  for (int c = block.thread_rank(); c < cols; c += block.num_threads()) maximum = fmaxf(maximum, x[first + c]);
  maximum = BlockReduce(block, maximum, cg::greater<float>());
  float sum = 0.0f;
  for (int c = block.thread_rank(); c < cols; c += block.num_threads()) {
    sum += exp2f((x[first + c] - maximum) * 1.44269504f);
  }
  sum = BlockReduce(block, sum, cg::plus<float>());
  const float shift = maximum + logf(sum);
  for (int c = block.thread_rank(); c < cols; c += block.num_threads()) out[first + c] = x[first + c] - shift;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { LogSoftmax<<<rows, 224>>>(x, out, cols); }
