// The tensor cores' instruction for bfloat16. Used by product.cuh and tensor_attention.cuh.
#pragma once
#include <cstdint>

namespace kgrpo::policy {

// d += a b, a 16 x 16, b 16 x 8. A lane (g = lane / 4, t = lane % 4) holds pairs of neighbours: of a row g, columns 2t
// (a0) and 2t + 8 (a2), and of row g + 8 the same (a1, a3); of b column g, rows 2t (b0) and 2t + 8 (b1); of d row g
// (d[0], d[1]) and g + 8, columns 2t and 2t + 1.
__device__ inline void Mma(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                           uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace kgrpo::policy
