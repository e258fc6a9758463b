// bfloat16 for host code in the fast compile route; see cuda_fp16.h.
#ifndef KGRPO_HOST_CUDA_BF16_H
#define KGRPO_HOST_CUDA_BF16_H

#include "cuda_fp16.h"

struct __attribute__((aligned(2))) __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float value) {
    union {
      float f;
      unsigned u;
    } in = {value};
    bits = (in.u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu
                                              : static_cast<unsigned short>((in.u + 0x7fffu + (in.u >> 16 & 1u)) >> 16);
  }
  operator float() const {
    union {
      unsigned u;
      float f;
    } out = {static_cast<unsigned>(bits) << 16};
    return out.f;
  }
};
struct __attribute__((aligned(4))) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
static inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
static inline float __bfloat162float(__nv_bfloat16 value) { return static_cast<float>(value); }

#endif
