// problem: problems/matmul_transposed
// style: mma.sync m16n8k8 tf32 by inline PTX, a warp 16 x 8 outputs; operands split in three, the main sum by additions
// cuda: correct
// sim: correct
#include <cstdint>

__device__ uint32_t ToTf32(float v) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return bits;
}

__device__ void Mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int kCount>
__device__ void Split(const float (&value)[kCount], uint32_t (&parts)[3][kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    float rest = value[i];
#pragma unroll
    for (int p = 0; p < 3; ++p) {
      parts[p][i] = ToTf32(rest);
      rest -= __uint_as_float(parts[p][i]);
    }
  }
}

__global__ void MatMul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int m, int n,
                       int k) {
  const int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
  const int row0 = blockIdx.y * 16, col0 = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 8;
  if (col0 >= n) return;  // a whole warp
  const auto load = [k](const float* matrix, int row, int rows, int col) {
    return row < rows && col < k ? __ldg(matrix + static_cast<size_t>(row) * k + col) : 0.0f;
  };
  float total[4] = {}, small[4] = {};
  for (int depth = 0; depth < k; depth += 8) {
    const float av[4] = {load(a, row0 + group, m, depth + member), load(a, row0 + group + 8, m, depth + member),
                         load(a, row0 + group, m, depth + member + 4),
                         load(a, row0 + group + 8, m, depth + member + 4)};
    const float bv[2] = {load(b, col0 + group, n, depth + member), load(b, col0 + group, n, depth + member + 4)};
    uint32_t ap[3][4], bp[3][2];
    Split(av, ap);
    Split(bv, bp);
    Mma(small, ap[2], bp[0]);
    Mma(small, ap[1], bp[1]);
    Mma(small, ap[0], bp[2]);
    Mma(small, ap[1], bp[0]);
    Mma(small, ap[0], bp[1]);
    float step[4] = {};
    Mma(step, ap[0], bp[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i) total[i] += step[i];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = row0 + group + (i / 2) * 8, col = col0 + member * 2 + i % 2;
    if (row < m && col < n) out[static_cast<size_t>(row) * n + col] = total[i] + small[i];
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  MatMul<<<dim3((n + 31) / 32, (m + 15) / 16), 128>>>(a, b, out, m, n, k);
}
