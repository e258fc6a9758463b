// problem: tests/evaluator/problems/row_sum
// bug: the warps' partial sums are exchanged after a barrier of the warp, not of the block
// finding: race in Sum: reads, shared array 'of_warp' (8 bytes), writes, barrier between
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void Sum(const float* x, float* out) {
  __shared__ float of_warp[2];
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  if (threadIdx.x < 2) of_warp[threadIdx.x] = 0;
  __syncthreads();
  float v = x[blockIdx.x * 64 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += warp.shfl_down(v, d);
  if (warp.thread_rank() == 0) of_warp[1 - threadIdx.x / 32] = v;  // found
  warp.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = of_warp[0] + of_warp[1];  // found
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
