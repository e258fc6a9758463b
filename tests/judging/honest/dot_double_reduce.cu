// problem: problems/dot_product
// style: double accumulators, cooperative groups' reduce, atomicAdd on a double in a __device__ global
// cuda: correct
// sim: correct
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <algorithm>

namespace cg = cooperative_groups;

__device__ double total;

__global__ void Clear() { total = 0.0; }

__global__ void Accumulate(const float* a, const float* b, int n) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  __shared__ double of_warp[8];
  double sum = 0.0;
  for (int i = block.group_index().x * block.size() + block.thread_rank(); i < n; i += gridDim.x * block.size()) {
    sum += static_cast<double>(a[i]) * b[i];
  }
  sum = cg::reduce(warp, sum, cg::plus<double>());
  if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = sum;
  block.sync();
  if (block.thread_rank() == 0) {
    for (unsigned w = 1; w < warp.meta_group_size(); ++w) sum += of_warp[w];
    atomicAdd(&total, sum);
  }
}

__global__ void Store(float* out) { *out = static_cast<float>(total); }

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Clear<<<1, 1>>>();
  Accumulate<<<std::min((n + 255) / 256, 528), 256>>>(a, b, n);
  Store<<<1, 1>>>(out);
}
