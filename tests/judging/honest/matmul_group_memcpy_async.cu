// problem: problems/matmul
// style: 32 x 32 tiles fetched ahead by cooperative groups' memcpy_async, waited for by wait
// cuda: correct
// sim: correct
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

namespace cg = cooperative_groups;
constexpr int kTile = 32;

__global__ void MatMul(const float* a, const float* b, float* out, int m, int n, int k) {
  __shared__ alignas(16) float as[2][kTile][kTile];
  __shared__ alignas(16) float bs[2][kTile][kTile];
  const cg::thread_block block = cg::this_thread_block();
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  const auto fetch = [&](int stage, int depth) {
    const int depths = min(kTile, k - depth), cols = min(kTile, n - col0);
    for (int r = 0; r < min(kTile, m - row0); ++r) {
      cg::memcpy_async(block, as[stage][r], a + static_cast<size_t>(row0 + r) * k + depth, depths * sizeof(float));
    }
    for (int d = 0; d < depths; ++d) {
      cg::memcpy_async(block, bs[stage][d], b + static_cast<size_t>(depth + d) * n + col0, cols * sizeof(float));
    }
  };
  const int row = row0 + threadIdx.y, col = col0 + threadIdx.x;
  const bool inside = row < m && col < n;
  float total[2] = {0.0f, 0.0f};
  fetch(0, 0);
  int stage = 0;
  for (int depth = 0; depth < k; depth += kTile, stage ^= 1) {
    cg::wait(block);
    if (depth + kTile < k) fetch(stage ^ 1, depth + kTile);
    const int depths = min(kTile, k - depth);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row + 16 * h >= m || col >= n) continue;
      for (int d = 0; d < depths; ++d) total[h] += as[stage][threadIdx.y + 16 * h][d] * bs[stage][d][threadIdx.x];
    }
    block.sync();
  }
  if (inside) out[static_cast<size_t>(row) * n + col] = total[0];
  if (row + 16 < m && col < n) out[static_cast<size_t>(row + 16) * n + col] = total[1];
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  MatMul<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), dim3(kTile, 16)>>>(a, b, out, m, n, k);
}
