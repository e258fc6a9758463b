// mma.sync of 8-, 4- and 1-bit integers, 8-bit floats and doubles; stmatrix and movmatrix, which store and transpose 8
// x 8 matrices. mma_ops.cc has mma.sync of 16-bit floats and tf32.
//
// In all of these a lane's register holds neighbouring elements of a row of A (a column of B): that of lane l begins at
// element (l % 4) * (elements a register); further registers are 8 rows below, then 4 registers' elements to the right.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "simt/alu/matrix.h"
#include "simt/check/access.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

enum class Format : uint8_t { kS8, kU8, kS4, kU4, kB1, kE4m3, kE5m2 };

uint32_t BitsOf(Format format) {
  return format == Format::kB1 ? 1 : format == Format::kS4 || format == Format::kU4 ? 4 : 8;
}

// The fields in Instruction::offset.
struct Product {
  uint32_t a_registers = 0;  // 1 (8 rows), 2 or 4
  Format a = Format::kS8, b = Format::kS8;
  bool saturate = false, bitwise_and = false;
  int64_t Pack() const {
    return static_cast<int64_t>(a_registers | static_cast<uint32_t>(a) << 4 | static_cast<uint32_t>(b) << 8 |
                                uint32_t{saturate} << 12 | uint32_t{bitwise_and} << 13);
  }
  static Product Unpack(int64_t packed) {
    const auto bits = static_cast<uint32_t>(packed);
    return {bits & 15u, static_cast<Format>(bits >> 4 & 15u), static_cast<Format>(bits >> 8 & 15u),
            (bits >> 12 & 1u) != 0, (bits >> 13 & 1u) != 0};
  }
};

int32_t IntegerOf(uint32_t word, uint32_t index, Format format) {
  switch (format) {
    case Format::kS8: return static_cast<int8_t>(word >> (8 * index));
    case Format::kU8: return static_cast<uint8_t>(word >> (8 * index));
    case Format::kS4: return static_cast<int32_t>(word >> (4 * index) << 28) >> 28;
    default: return static_cast<int32_t>(word >> (4 * index) & 15u);
  }
}

// Row `row` of A times column `column` of B: calls each(word of A, word of B) for the registers that hold them.
template <typename Each>
void ForWords(const Warp& warp, const Operand* a, const Operand* b, const Product& p, uint32_t row, uint32_t column,
              Each each) {
  const uint32_t halves = p.a_registers == 1 ? 1 : 2;  // of A's rows
  const uint32_t steps = p.a_registers / halves;
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t within = 0; within < 4; ++within) {
      each(SourceAs<uint32_t>(warp, a[step * halves + row / 8])[row % 8 * 4 + within],
           SourceAs<uint32_t>(warp, b[step])[column * 4 + within]);
    }
  }
}

template <typename Dot>
void MultiplyPacked(Warp& warp, const Instruction& in, uint32_t mask, Dot dot) {
  NeedWholeWarp(warp, in, mask);
  const Product p = Product::Unpack(in.offset);
  const uint32_t results = p.a_registers == 1 ? 2 : 4;
  const uint32_t b_registers = p.a_registers == 4 ? 2 : 1;
  const Operand* d = &warp.grid->kernel->operands[in.extra];
  const Operand* a = d + results;
  const Operand* b = a + p.a_registers;
  const Operand* c = b + b_registers;
  uint32_t made[4][kLanes];
  for (uint32_t i = 0; i < results; ++i) {
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      made[i][lane] = dot(a, b, p, lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2, SourceAs<uint32_t>(warp, c[i])[lane]);
  }
  for (uint32_t i = 0; i < results; ++i) std::memcpy(TargetAs<uint32_t>(warp, d[i]), made[i], sizeof made[i]);
}

void MmaIntegers(Warp& warp, const Instruction& in, uint32_t mask) {
  MultiplyPacked(warp, in, mask,
                 [&](const Operand* a, const Operand* b, const Product& p, uint32_t row, uint32_t column, uint32_t c) {
                   int64_t sum = static_cast<int32_t>(c);
                   ForWords(warp, a, b, p, row, column, [&](uint32_t x, uint32_t y) {
                     for (uint32_t i = 0; i < 32 / BitsOf(p.a); ++i)
                       sum += int64_t{IntegerOf(x, i, p.a)} * IntegerOf(y, i, p.b);
                   });
                   if (p.saturate && sum > std::numeric_limits<int32_t>::max()) return 0x7FFFFFFFu;
                   if (p.saturate && sum < std::numeric_limits<int32_t>::min()) return 0x80000000u;
                   return static_cast<uint32_t>(sum);
                 });
}

void MmaBits(Warp& warp, const Instruction& in, uint32_t mask) {
  MultiplyPacked(warp, in, mask,
                 [&](const Operand* a, const Operand* b, const Product& p, uint32_t row, uint32_t column, uint32_t c) {
                   ForWords(warp, a, b, p, row, column, [&](uint32_t x, uint32_t y) {
                     c += static_cast<uint32_t>(std::popcount(p.bitwise_and ? x & y : x ^ y));
                   });
                   return c;
                 });
}

void MmaTiny(Warp& warp, const Instruction& in, uint32_t mask) {
  MultiplyPacked(
      warp, in, mask,
      [&](const Operand* a, const Operand* b, const Product& p, uint32_t row, uint32_t column, uint32_t c) {
        double sum = 0;
        ForWords(warp, a, b, p, row, column, [&](uint32_t x, uint32_t y) {
          for (uint32_t i = 0; i < 4; ++i) {
            sum += static_cast<double>(WidenTinyFloat(x >> (8 * i) & 0xFFu, p.a == Format::kE5m2)) *
                   static_cast<double>(WidenTinyFloat(y >> (8 * i) & 0xFFu, p.b == Format::kE5m2));
          }
        });
        return std::bit_cast<uint32_t>(static_cast<float>(sum + static_cast<double>(std::bit_cast<float>(c))));
      });
}

// Doubles: one a register, four columns of A apart. Instruction::offset: the depth k, and 16 where there are 16 rows.
void MmaDoubles(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const auto depth = static_cast<uint32_t>(in.offset & 0xFF);
  const uint32_t halves = (in.offset & 0x100) != 0 ? 2 : 1, results = 2 * halves;
  const Operand* d = &warp.grid->kernel->operands[in.extra];
  const Operand* a = d + results;
  const Operand* b = a + halves * depth / 4;
  const Operand* c = b + depth / 4;
  double made[4][kLanes];
  for (uint32_t i = 0; i < results; ++i) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      double sum = SourceAs<double>(warp, c[i])[lane];
      for (uint32_t k = 0; k < depth; ++k) {
        sum = std::fma(SourceAs<double>(warp, a[k / 4 * halves + row / 8])[row % 8 * 4 + k % 4],
                       SourceAs<double>(warp, b[k / 4])[column * 4 + k % 4], sum);
      }
      made[i][lane] = sum;
    }
  }
  for (uint32_t i = 0; i < results; ++i) std::memcpy(TargetAs<double>(warp, d[i]), made[i], sizeof made[i]);
}

// operands = sources; a = address, of which lanes 8 i ... 8 i + 7 hold the rows of matrix i.
template <bool kTransposed>
void StMatrix(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const Operand* sources = &warp.grid->kernel->operands[in.extra];
  const auto matrices = static_cast<uint32_t>(in.offset);
  const uint32_t addressing = matrices == 4 ? kAllLanes : (1u << (8 * matrices)) - 1;
  Instruction plain = in;
  plain.offset = 0;
  Access access;
  Resolve(warp, plain, addressing, 16, AccessKind::kStore, access);
  MarkWritten(warp, addressing, access);
  for (uint32_t address = 0; address < 8 * matrices; ++address) {
    const uint32_t matrix = address / 8, row = address % 8;
    uint16_t values[8];
    for (uint32_t column = 0; column < 8; ++column) {
      const uint32_t lane = kTransposed ? column * 4 + row / 2 : row * 4 + column / 2;
      const uint32_t half = kTransposed ? row % 2 : column % 2;
      values[column] = static_cast<uint16_t>(SourceAs<uint32_t>(warp, sources[matrix])[lane] >> (16 * half));
    }
    std::byte* at = access.At(static_cast<int>(address));
    if (warp.grid->checked) {
      CheckStoreOrder(warp, in, static_cast<int>(address), access, AccessKind::kStore,
                      std::memcmp(at, values, sizeof values) != 0);
    }
    std::memcpy(at, values, sizeof values);
  }
}

// operands = result, source: an 8 x 8 matrix transposed among the lanes.
void MoveMatrix(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const Operand* operands = &warp.grid->kernel->operands[in.extra];
  const uint32_t* source = SourceAs<uint32_t>(warp, operands[1]);
  uint32_t result[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    result[lane] = 0;
    for (uint32_t e = 0; e < 2; ++e) {
      const uint32_t row = lane % 4 * 2 + e, column = lane / 4;
      result[lane] |= (source[row * 4 + column / 2] >> (16 * (column % 2)) & 0xFFFFu) << (16 * e);
    }
  }
  std::memcpy(TargetAs<uint32_t>(warp, operands[0]), result, sizeof result);
}

// The formats of A and B, in order. False: others.
bool ReadFormats(const Opcode& op, Product& p) {
  struct Name {
    std::string_view text;
    Format format;
  };
  constexpr Name kNames[] = {
      {"s4", Format::kS4}, {"u4", Format::kU4}, {"b1", Format::kB1}, {"e4m3", Format::kE4m3}, {"e5m2", Format::kE5m2}};
  int found = 0;
  auto take = [&](Format format) { (found++ == 0 ? p.a : p.b) = format; };
  for (int i = 0; i < op.modifier_count; ++i) {
    for (const Name& name : kNames) {
      if (op.modifiers[static_cast<size_t>(i)] == name.text) take(name.format);
    }
  }
  for (int i = 1; i + 1 < op.type_count; ++i) {
    const Type type = op.types[static_cast<size_t>(i)];
    if (type == Type::kS8 || type == Type::kU8) take(type == Type::kS8 ? Format::kS8 : Format::kU8);
  }
  return found == 2 && BitsOf(p.a) == BitsOf(p.b) && (p.a >= Format::kE4m3) == (p.b >= Format::kE4m3);
}

}  // namespace

Handler FindMmaOfFormat(const Opcode& op, Instruction& in) {
  Shape shape;
  if (!ReadShape(op, shape) || op.Has("sp") || op.Has("sp::ordered_metadata") || op.Has("block_scale") ||
      shape.n != 8 || (shape.m != 8 && shape.m != 16))
    return nullptr;
  if (op.type() == Type::kF64) {
    if (shape.k % 4 != 0 || shape.k > 16 || (shape.m == 8 && shape.k != 4)) return nullptr;
    in.offset = shape.k | (shape.m == 16 ? 0x100 : 0);
    return &MmaDoubles;
  }
  Product p;
  if (!ReadFormats(op, p)) return nullptr;
  const uint32_t per_register = 32 / BitsOf(p.a);
  p.a_registers = shape.k / per_register / 4 * (shape.m / 8);
  if (p.a_registers != 1 && p.a_registers != 2 && p.a_registers != 4) return nullptr;
  if (p.a_registers == 2 && shape.m == 8) return nullptr;
  p.saturate = op.Has("satfinite");
  p.bitwise_and = op.Has("and");
  in.offset = p.Pack();
  const Type result = op.types[0], sum = op.types[static_cast<size_t>(op.type_count - 1)];
  if (p.a >= Format::kE4m3) return result == Type::kF32 && sum == Type::kF32 ? &MmaTiny : nullptr;
  if (result != Type::kS32 || sum != Type::kS32) return nullptr;
  return p.a == Format::kB1 ? &MmaBits : &MmaIntegers;
}

Handler FindStMatrix(const Opcode& op, Instruction& in) {
  if (!op.Has("m8n8") || op.type() != Type::kB16) return nullptr;
  in.offset = op.Has("x4") ? 4 : op.Has("x2") ? 2 : 1;
  return op.Has("trans") ? &StMatrix<true> : &StMatrix<false>;
}

Handler FindMoveMatrix(const Opcode& op) {
  return op.Has("m8n8") && op.Has("trans") && op.type() == Type::kB16 ? &MoveMatrix : nullptr;
}

}  // namespace kgrpo::simt
