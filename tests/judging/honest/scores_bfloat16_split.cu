// problem: problems/scores_transposed
// style: mma.sync m16n8k16 in bfloat16: a float32 is the sum of three of them; six products, ldmatrix from shared memory
// cuda: correct
// sim: correct
#include <cuda_bf16.h>

#include <cstdint>

constexpr int kWarps = 4, kRows = 16, kCols = 8 * kWarps, kDepth = 16;

__device__ void Mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void PutSplit(float value, __nv_bfloat16* high, __nv_bfloat16* middle, __nv_bfloat16* low) {
  *high = __float2bfloat16(value);
  const float rest = value - __bfloat162float(*high);
  *middle = __float2bfloat16(rest);
  *low = __float2bfloat16(rest - __bfloat162float(*middle));
}

__global__ void Scores(const float* a, const float* b, float* out, int m, int n, int k, float scale) {
  __shared__ alignas(16) __nv_bfloat16 as[3][kRows][kDepth + 8], bs[3][kCols][kDepth + 8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row0 = blockIdx.y * kRows, col0 = blockIdx.x * kCols;
  float main_sum[4] = {}, rest_sum[4] = {};
  for (int depth = 0; depth < k; depth += kDepth) {
    for (int i = threadIdx.x; i < (kRows + kCols) * kDepth; i += 32 * kWarps) {
      const int r = i / kDepth, d = i % kDepth;
      if (r < kRows) {
        const bool inside = row0 + r < m && depth + d < k;
        PutSplit(inside ? a[static_cast<size_t>(row0 + r) * k + depth + d] : 0.0f, &as[0][r][d], &as[1][r][d],
                 &as[2][r][d]);
      } else {
        const int c = r - kRows;
        const bool inside = col0 + c < n && depth + d < k;
        PutSplit(inside ? b[static_cast<size_t>(col0 + c) * k + depth + d] : 0.0f, &bs[0][c][d], &bs[1][c][d],
                 &bs[2][c][d]);
      }
    }
    __syncthreads();
    uint32_t af[3][4], bf[3][2];
#pragma unroll
    for (int p = 0; p < 3; ++p) {
      const auto from_a = static_cast<uint32_t>(__cvta_generic_to_shared(&as[p][lane % 16][lane / 16 * 8]));
      const auto from_b =
          static_cast<uint32_t>(__cvta_generic_to_shared(&bs[p][warp * 8 + lane % 8][lane / 8 % 2 * 8]));
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(af[p][0]), "=r"(af[p][1]), "=r"(af[p][2]), "=r"(af[p][3])
                   : "r"(from_a));
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                   : "=r"(bf[p][0]), "=r"(bf[p][1])
                   : "r"(from_b));
    }
    Mma(rest_sum, af[1], bf[1]);
    Mma(rest_sum, af[2], bf[0]);
    Mma(rest_sum, af[0], bf[2]);
    Mma(rest_sum, af[1], bf[0]);
    Mma(rest_sum, af[0], bf[1]);
    float step[4] = {};
    Mma(step, af[0], bf[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i) main_sum[i] += step[i];
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = row0 + lane / 4 + i / 2 * 8, col = col0 + warp * 8 + lane % 4 * 2 + i % 2;
    if (row < m && col < n) out[static_cast<size_t>(row) * n + col] = scale * (main_sum[i] + rest_sum[i]);
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k, float scale) {
  Scores<<<dim3((n + kCols - 1) / kCols, (m + kRows - 1) / kRows), 32 * kWarps>>>(a, b, out, m, n, k, scale);
}
