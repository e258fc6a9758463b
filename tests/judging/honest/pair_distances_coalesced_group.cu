// problem: problems/pair_distances
// style: a block of 96 threads a few rows; shared staging; coalesced_threads() after a branch
// cuda: correct
// sim: correct
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void Distances(const float* x, const float* y, float* out, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * 3 + threadIdx.x / 32;
  if (row >= rows) return;
  const size_t first = static_cast<size_t>(row) * cols;
  if (lane < cols) {
    // Only the lanes that have an element.
    const cg::coalesced_group active = cg::coalesced_threads();
    float sum = 0.0f;
    for (int col = active.thread_rank(); col < cols; col += active.size()) {
      const float d = x[first + col] - y[first + col];
      sum = fmaf(d, d, sum);
    }
    sum = cg::reduce(active, sum, cg::plus<float>());
    if (active.thread_rank() == 0) out[row] = sqrtf(sum);
  }
}

extern "C" void launch(const float* x, const float* y, float* out, int rows, int cols) {
  Distances<<<(rows + 2) / 3, 96>>>(x, y, out, rows, cols);
}
