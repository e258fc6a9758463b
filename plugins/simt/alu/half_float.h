// Conversions between float and the 16-bit formats, in integer arithmetic: the same on every machine, and vectorisable.
#pragma once

#include <bit>
#include <cstdint>

namespace kgrpo::simt {
namespace {  // internal linkage: this header is compiled for several instruction sets

inline float HalfToFloat(uint32_t half) {
  const uint32_t magnitude = (half & 0x7FFFu) << 13;
  // Scaling by 2^112 moves the exponent's bias and normalises subnormals at once.
  const float scaled = std::bit_cast<float>(magnitude) * std::bit_cast<float>(0x77800000u);
  uint32_t bits = std::bit_cast<uint32_t>(scaled);
  bits = (half & 0x7C00u) == 0x7C00u ? (magnitude | 0x7F800000u) : bits;
  return std::bit_cast<float>(bits | ((half & 0x8000u) << 16));
}

// To nearest, ties to even. NaN becomes the canonical 0x7FFF, as on the GPU.
inline uint32_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  // Subnormal results: adding 0.5 leaves the rounded result in the low bits.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t half = magnitude < 0x38800000u ? small : normal;
  half = magnitude >= 0x477FF000u ? 0x7C00u : half;
  half = magnitude > 0x7F800000u ? 0x7FFFu : half | ((bits >> 16) & 0x8000u);
  return half;
}

inline float Bf16ToFloat(uint32_t bf16) { return std::bit_cast<float>(bf16 << 16); }

inline uint32_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FFFu : rounded & 0xFFFFu;
}

// double to float, rounding to odd: a later rounding to fewer bits is then as if there had been only one. What is
// beyond the range becomes the largest float, which is odd.
inline float DoubleToFloatOdd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (back == value || value != value || (bits & 1u) != 0) return nearest;
  // The exact value lies between two floats: take the odd one, which is the neighbour on the value's side.
  const bool away = (value < 0 ? -value : value) > (back < 0 ? -back : back);
  return std::bit_cast<float>(away ? bits + 1 : bits - 1);
}

inline uint32_t DoubleToHalf(double value) { return FloatToHalf(DoubleToFloatOdd(value)); }
inline uint32_t DoubleToBf16(double value) { return FloatToBf16(DoubleToFloatOdd(value)); }

}  // namespace
}  // namespace kgrpo::simt
