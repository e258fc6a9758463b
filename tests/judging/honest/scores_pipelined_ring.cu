// problem: problems/scores_transposed
// style: a ring of three stages by __pipeline_memcpy_async in dynamic shared memory, zero-filled edges
// cuda: correct
// sim: correct
#include <cuda_pipeline.h>

constexpr int kTile = 32, kDepth = 16, kStages = 3, kStride = kDepth + 1;

__global__ __launch_bounds__(256) void Scores(const float* a, const float* b, float* out, int m, int n, int k,
                                              float scale) {
  extern __shared__ float ring[];  // [kStages][2][kTile][kStride]
  const int thread = threadIdx.x, row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  const int steps = (k + kDepth - 1) / kDepth;
  const auto stage_of = [&](int step, int matrix) { return ring + ((step % kStages) * 2 + matrix) * kTile * kStride; };
  const auto fetch = [&](int step) {
    if (step < steps) {
      for (int i = thread; i < 2 * kTile * kDepth; i += 256) {
        const int matrix = i / (kTile * kDepth), r = i / kDepth % kTile, d = i % kDepth;
        const int row = (matrix == 0 ? row0 : col0) + r, rows = matrix == 0 ? m : n, depth = step * kDepth + d;
        const bool inside = row < rows && depth < k;
        const float* from = matrix == 0 ? a : b;
        // Nothing is read where all of it is filled with zeros, but the address must be one.
        __pipeline_memcpy_async(stage_of(step, matrix) + r * kStride + d,
                                inside ? from + static_cast<size_t>(row) * k + depth : from, sizeof(float),
                                inside ? 0 : sizeof(float));
      }
    }
    __pipeline_commit();
  };
  for (int s = 0; s < kStages - 1; ++s) fetch(s);
  const int tx = thread % 32, ty = thread / 32;
  float total[4] = {};
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    fetch(step + kStages - 1);
    const float *as = stage_of(step, 0), *bs = stage_of(step, 1);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) total[i] += as[(ty + 8 * i) * kStride + d] * bs[tx * kStride + d];
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = row0 + ty + 8 * i, col = col0 + tx;
    if (row < m && col < n) out[static_cast<size_t>(row) * n + col] = scale * total[i];
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k, float scale) {
  constexpr size_t kBytes = sizeof(float) * kStages * 2 * kTile * kStride;
  Scores<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), 256, kBytes>>>(a, b, out, m, n, k, scale);
}
