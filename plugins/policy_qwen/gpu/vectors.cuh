// Elements of either dtype, read and written 16 bytes at a time where the arrays allow it. Used by this folder's
// kernels.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "policy_qwen/gpu/kernels.h"

namespace kgrpo::policy {

template <typename T>
__device__ inline float ToFloat(T value) {
  return static_cast<float>(value);
}
template <typename T>
__device__ inline T FromFloat(float value) {
  return static_cast<T>(value);  // to the nearest, ties to even
}

// A value rounded to T and back.
template <typename T>
__device__ inline float Rounded(float value) {
  return ToFloat(FromFloat<T>(value));
}

// N neighbouring elements as floats. Loads and stores are one access each: of 16 bytes, or of one element for N = 1.
template <typename T, int N>
struct alignas(sizeof(T) * N) Packed {
  T at[N];
};

template <typename T, int N>
struct Lanes {
  float at[N];

  __device__ static Lanes Load(const T* from) {
    const Packed<T, N> packed = *reinterpret_cast<const Packed<T, N>*>(from);
    Lanes lanes;
#pragma unroll
    for (int i = 0; i < N; ++i) lanes.at[i] = ToFloat(packed.at[i]);
    return lanes;
  }

  __device__ void Store(T* to) const {
    Packed<T, N> packed;
#pragma unroll
    for (int i = 0; i < N; ++i) packed.at[i] = FromFloat<T>(at[i]);
    *reinterpret_cast<Packed<T, N>*>(to) = packed;
  }
};

__device__ inline float WarpSum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// Number of elements of T in 16 bytes.
template <typename T>
inline constexpr int kWide = 16 / sizeof(T);

// True if pointers and element counts are multiples of 16 bytes of elements.
template <typename... Values>
bool IsWide(Element type, Values... values) {
  const uint64_t elements = type == Element::kBfloat16 ? 8 : 4;
  const auto fits = [&](auto value) {
    if constexpr (std::is_pointer_v<decltype(value)>) {
      return reinterpret_cast<uintptr_t>(value) % 16 == 0;
    } else {
      return static_cast<uint64_t>(value) % elements == 0;
    }
  };
  return (fits(values) && ...);
}

// Calls body<T>() with T the element type.
template <typename Body>
void ForElement(Element type, Body&& body) {
  if (type == Element::kBfloat16) {
    body.template operator()<__nv_bfloat16>();
  } else {
    body.template operator()<float>();
  }
}

// Calls body<T, N>(), N being kWide<T> if `wide`, else 1.
template <typename Body>
void ForLanes(Element type, bool wide, Body&& body) {
  ForElement(type, [&]<typename T>() {
    if (wide) {
      body.template operator()<T, kWide<T>>();
    } else {
      body.template operator()<T, 1>();
    }
  });
}

// The tensor cores' instruction for bfloat16: d += a b, a 16 x 16, b 16 x 8. A lane (g = lane / 4, t = lane % 4) holds
// pairs of neighbours: of a row g, columns 2t (a0) and 2t + 8 (a2), and of row g + 8 the same (a1, a3); of b column g,
// rows 2t (b0) and 2t + 8 (b1); of d row g (d[0], d[1]) and g + 8, columns 2t and 2t + 1.
__device__ inline void Mma(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                           uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace kgrpo::policy
