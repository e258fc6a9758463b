// Elements of either dtype, read and written 16 bytes at a time where the arrays allow it. Used by this folder's
// kernels.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

namespace kgrpo::policy {

template <typename T>
__device__ inline float ToFloat(T value);
template <>
__device__ inline float ToFloat(float value) {
  return value;
}
template <>
__device__ inline float ToFloat(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

template <typename T>
__device__ inline T FromFloat(float value);
template <>
__device__ inline float FromFloat(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 FromFloat(float value) {
  return __float2bfloat16(value);
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

// Calls body<T, N>() with T the element type, and N = kWide<T> where all counts and pointers are multiples of it,
// else 1.
template <typename Body>
void Dispatch(bool bfloat16, bool wide, Body&& body) {
  if (bfloat16) {
    if (wide) {
      body.template operator()<__nv_bfloat16, kWide<__nv_bfloat16>>();
    } else {
      body.template operator()<__nv_bfloat16, 1>();
    }
  } else if (wide) {
    body.template operator()<float, kWide<float>>();
  } else {
    body.template operator()<float, 1>();
  }
}

// True if pointers and element counts are multiples of 16 bytes of `bfloat16` or float32 elements.
template <typename... Values>
bool IsWide(bool bfloat16, Values... values) {
  const uint64_t elements = bfloat16 ? 8 : 4;
  const auto fits = [&](auto value) {
    if constexpr (std::is_pointer_v<decltype(value)>) {
      return reinterpret_cast<uintptr_t>(value) % 16 == 0;
    } else {
      return static_cast<uint64_t>(value) % elements == 0;
    }
  };
  return (fits(values) && ...);
}

}  // namespace kgrpo::policy
