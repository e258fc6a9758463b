// problem: problems/matmul_transposed
// style: a warp four neighbouring outputs, lanes along k, float2 loads where k is even, butterflies
// cuda: correct
// sim: correct
#include <cstdint>

template <bool kPairs>
__global__ void MatMul(const float* a, const float* b, float* out, int m, int n, int k) {
  const int lane = threadIdx.x & 31;
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int groups = (n + 3) / 4;
  if (warp >= m * groups) return;
  const int row = warp / groups, col0 = warp % groups * 4;
  const float* left = a + static_cast<size_t>(row) * k;
  float total[4] = {};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int col = min(col0 + j, n - 1);
    const float* right = b + static_cast<size_t>(col) * k;
    if (kPairs) {
      for (int i = lane; i < k / 2; i += 32) {
        const float2 u = reinterpret_cast<const float2*>(left)[i], v = reinterpret_cast<const float2*>(right)[i];
        total[j] = fmaf(u.x, v.x, fmaf(u.y, v.y, total[j]));
      }
    } else {
      for (int i = lane; i < k; i += 32) total[j] = fmaf(left[i], right[i], total[j]);
    }
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
#pragma unroll
    for (int j = 0; j < 4; ++j) total[j] += __shfl_xor_sync(0xffffffffu, total[j], mask);
  }
  const float mine = lane == 0 ? total[0] : lane == 1 ? total[1] : lane == 2 ? total[2] : total[3];
  if (lane < 4 && col0 + lane < n) out[static_cast<size_t>(row) * n + col0 + lane] = mine;
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  const int warps = m * ((n + 3) / 4), blocks = (warps + 7) / 8;
  const bool aligned = (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 8 == 0;
  if (k % 2 == 0 && aligned) {
    MatMul<true><<<blocks, 256>>>(a, b, out, m, n, k);
  } else {
    MatMul<false><<<blocks, 256>>>(a, b, out, m, n, k);
  }
}
