// Half precision for host code in the fast compile route: the types, which kernels' parameters need, and the
// conversions.
#ifndef KGRPO_HOST_CUDA_FP16_H
#define KGRPO_HOST_CUDA_FP16_H

#include "cuda_runtime.h"

struct __attribute__((aligned(2))) __half {
  unsigned short bits;
  __half() = default;
  __half(float value) { *this = FromFloat(value); }
  operator float() const {
    const unsigned sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31, fraction = bits & 0x3ffu;
    union {
      unsigned u;
      float f;
    } out;
    if (exponent == 31) {
      out.u = sign | 0x7f800000u | fraction << 13;
    } else if (exponent != 0) {
      out.u = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
      out.f = static_cast<float>(fraction) * 0x1p-24f;
      out.u |= sign;
    }
    return out.f;
  }

 private:
  static __half FromFloat(float value) {
    union {
      float f;
      unsigned u;
    } in = {value}, scaled;
    __half out;
    const unsigned sign = in.u >> 16 & 0x8000u, magnitude = in.u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      out.bits = 0x7fffu;
    } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
      out.bits = static_cast<unsigned short>(sign | 0x7c00u);
    } else if (magnitude < 0x38800000u) {  // subnormal: the addition rounds to a multiple of 2^-24
      scaled.u = magnitude;
      scaled.f += 0.5f;
      out.bits = static_cast<unsigned short>(sign | (scaled.u - 0x3f000000u));
    } else {
      out.bits =
          static_cast<unsigned short>(sign | ((magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13));
    }
    return out;
  }
};
struct __attribute__((aligned(4))) __half2 {
  __half x, y;
};
typedef __half half;
typedef __half2 half2;
static inline __half __float2half(float value) { return __half(value); }
static inline __half __float2half_rn(float value) { return __half(value); }
static inline float __half2float(__half value) { return static_cast<float>(value); }

#endif
