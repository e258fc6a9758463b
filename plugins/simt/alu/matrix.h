// Shared by the tensor core instructions: their shapes, and elements of fragments. Used by mma_ops.cc and wmma_ops.cc.
//
// Sums are taken in double precision and rounded once: a tensor core keeps fewer bits, differently on each generation.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "simt/alu/half_float.h"
#include "simt/state/machine.h"
#include "simt/state/opcode.h"

namespace kgrpo::simt {

enum class Element : uint8_t { kF16, kBf16, kTf32, kF32, kS8, kU8, kS32 };

// The contents of Instruction::offset of a matrix instruction.
struct Shape {
  uint32_t m = 0, n = 0, k = 0;
  Element input = Element::kF16, sum = Element::kF32, result = Element::kF32;
  bool a_by_column = false, b_by_column = false;  // how the matrix lies in memory (and so in wmma's fragments)
  enum class Part : uint8_t { kA, kB, kC } part = Part::kA;
  bool saturates = false;  // sums of integers saturate

  int64_t Pack() const {
    return static_cast<int64_t>(m | n << 8 | k << 16) | static_cast<int64_t>(input) << 24 |
           static_cast<int64_t>(sum) << 28 | static_cast<int64_t>(result) << 32 | int64_t{a_by_column} << 36 |
           int64_t{b_by_column} << 37 | static_cast<int64_t>(part) << 38 | int64_t{saturates} << 40;
  }
  static Shape Unpack(int64_t packed) {
    const auto bits = static_cast<uint64_t>(packed);
    Shape s;
    s.m = bits & 0xFF;
    s.n = bits >> 8 & 0xFF;
    s.k = bits >> 16 & 0xFF;
    s.input = static_cast<Element>(bits >> 24 & 15);
    s.sum = static_cast<Element>(bits >> 28 & 15);
    s.result = static_cast<Element>(bits >> 32 & 15);
    s.a_by_column = (bits >> 36 & 1) != 0;
    s.b_by_column = (bits >> 37 & 1) != 0;
    s.part = static_cast<Part>(bits >> 38 & 3);
    s.saturates = (bits >> 40 & 1) != 0;
    return s;
  }
};

// The shape that a modifier such as "m16n8k16" names. False: none does.
bool ReadShape(const Opcode& op, Shape& shape);
// False: `type` is no element of a matrix.
bool ElementOf(Type type, Element& element);
// Loads or stores of a lane that a fragment in global memory takes on a GPU.
uint32_t FragmentAccesses(const Instruction& in);
// Reports a matrix operation of a part of a warp; throws Fault.
void NeedWholeWarp(Warp& warp, const Instruction& in, uint32_t mask);

inline uint32_t BytesOf(Element element) {
  if (element == Element::kS8 || element == Element::kU8) return 1;
  return element == Element::kF16 || element == Element::kBf16 ? 2 : 4;
}

inline double Widen(uint32_t bits, Element element) {
  switch (element) {
    case Element::kF16: return static_cast<double>(HalfToFloat(bits & 0xFFFFu));
    case Element::kBf16: return static_cast<double>(Bf16ToFloat(bits & 0xFFFFu));
    case Element::kTf32: return static_cast<double>(std::bit_cast<float>(bits & 0xFFFFE000u));
    case Element::kF32: return static_cast<double>(std::bit_cast<float>(bits));
    case Element::kS8: return static_cast<int8_t>(bits);
    case Element::kU8: return static_cast<uint8_t>(bits);
    case Element::kS32: return static_cast<int32_t>(bits);
  }
  return 0;
}
inline uint32_t Narrow(double value, Element element) {
  // Exact in double precision; what does not fit wraps around.
  if (element == Element::kS32) return static_cast<uint32_t>(static_cast<int64_t>(value));
  if (element == Element::kF16) return DoubleToHalf(value);
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}

// Element `slot` of a fragment in lane `lane`, whose registers are operands[0...].
inline uint32_t GetElement(const Warp& warp, const Operand* operands, int lane, uint32_t slot, Element element) {
  if (BytesOf(element) == 4) return SourceAs<uint32_t>(warp, operands[slot])[lane];
  if (BytesOf(element) == 1) return SourceAs<uint32_t>(warp, operands[slot / 4])[lane] >> (8 * (slot % 4)) & 0xFFu;
  return SourceAs<uint32_t>(warp, operands[slot / 2])[lane] >> (16 * (slot % 2)) & 0xFFFFu;
}
inline void SetElement(Warp& warp, const Operand* operands, int lane, uint32_t slot, Element element, uint32_t bits) {
  if (BytesOf(element) == 4) {
    TargetAs<uint32_t>(warp, operands[slot])[lane] = bits;
    return;
  }
  const uint32_t bytes = BytesOf(element), held = 4 / bytes, all = bytes == 1 ? 0xFFu : 0xFFFFu;
  uint32_t& word = TargetAs<uint32_t>(warp, operands[slot / held])[lane];
  const uint32_t shift = 8 * bytes * (slot % held);
  word = (word & ~(all << shift)) | bits << shift;
}

using Matrix = std::array<double, 32 * 32>;

inline void Multiply(const Shape& s, const Matrix& a, const Matrix& b, Matrix& c) {
  for (uint32_t i = 0; i < s.m; ++i) {
    for (uint32_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (uint32_t k = 0; k < s.k; ++k) sum += a[i * s.k + k] * b[k * s.n + j];
      c[i * s.n + j] += sum;
    }
  }
}

// The number that a code of e4m3 or e5m2 stands for (lane_ops.cc).
float WidenTinyFloat(uint32_t code, bool is_e5m2);

// The multiplications: handlers of `mma` and `wmma.mma`.
void Mma(Warp& warp, const Instruction& in, uint32_t mask);
void WmmaMultiply(Warp& warp, const Instruction& in, uint32_t mask);

}  // namespace kgrpo::simt
