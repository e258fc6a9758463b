// mma.sync, whose fragments lie as the PTX manual says, and ldmatrix, which loads them.
#include <cstring>

#include "simt/alu/matrix.h"
#include "simt/check/access.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

template <bool kTransposed>
void LdMatrix(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const Operand* d = &warp.grid->kernel->operands[in.extra];
  Access access;
  // Lanes 8 i ... 8 i + 7 hold the rows' addresses of matrix i.
  const auto matrices = static_cast<uint32_t>(in.offset);
  const uint32_t addressing = matrices == 4 ? kAllLanes : (1u << (8 * matrices)) - 1;
  Instruction plain = in;
  plain.offset = 0;
  Resolve(warp, plain, addressing, 16, AccessKind::kLoad, access);
  if (warp.grid->checked) {
    access.target = kTransposed ? Access::Target::kTransposedRow : Access::Target::kRow;
    CheckInitialised(warp, in, addressing, access, 0, true);
    CheckLoadOrder(warp, in, addressing, access, IsWatched(*warp.grid->kernel, in) ? 1 : 0);
    if (warp.suspicious) SetSuspects(warp, in, mask);
  }
  for (uint32_t i = 0; i < matrices; ++i) {
    uint32_t result[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      uint32_t word = 0;
      for (uint32_t e = 0; e < 2; ++e) {
        const uint32_t row = kTransposed ? lane % 4 * 2 + e : lane / 4,
                       column = kTransposed ? lane / 4 : lane % 4 * 2 + e;
        uint16_t value;
        std::memcpy(&value, access.At(static_cast<int>(8 * i + row)) + column * 2, 2);
        word |= uint32_t{value} << (16 * e);
      }
      result[lane] = word;
    }
    std::memcpy(TargetAs<uint32_t>(warp, d[i]), result, sizeof result);
  }
}

}  // namespace

void Mma(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const Shape s = Shape::Unpack(in.offset);
  const bool narrow = BytesOf(s.input) == 2;
  const uint32_t a_slots = s.m * s.k / kLanes, b_slots = s.k * s.n / kLanes;
  const uint32_t packed = narrow ? 2 : 1;
  const uint32_t d_registers = BytesOf(s.result) == 2 ? 2 : 4;
  const Operand* d = &warp.grid->kernel->operands[in.extra];
  const Operand* a = d + d_registers;
  const Operand* b = a + a_slots / packed;
  const Operand* c = b + b_slots / packed;
  Matrix am, bm, cm;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto group = static_cast<uint32_t>(lane) / 4, within = static_cast<uint32_t>(lane) % 4;
    for (uint32_t i = 0; i < a_slots; ++i) {
      uint32_t row, column;
      if (narrow) {
        row = group + (i / 2 % 2) * 8;
        column = within * 2 + i % 2 + i / 4 * 8;
      } else {
        row = group + i % 2 * 8;
        column = within + i / 2 * 4;
      }
      am[row * s.k + column] = Widen(GetElement(warp, a, lane, i, s.input), s.input);
    }
    for (uint32_t i = 0; i < b_slots; ++i) {
      const uint32_t row = narrow ? within * 2 + i % 2 + i / 2 * 8 : within + i * 4;
      bm[row * s.n + group] = Widen(GetElement(warp, b, lane, i, s.input), s.input);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      cm[(group + i / 2 * 8) * s.n + within * 2 + i % 2] = Widen(GetElement(warp, c, lane, i, s.sum), s.sum);
    }
  }
  Multiply(s, am, bm, cm);
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto group = static_cast<uint32_t>(lane) / 4, within = static_cast<uint32_t>(lane) % 4;
    for (uint32_t i = 0; i < 4; ++i)
      SetElement(warp, d, lane, i, s.result, Narrow(cm[(group + i / 2 * 8) * s.n + within * 2 + i % 2], s.result));
  }
}

Handler FindLdMatrix(const Opcode& op, Instruction& in) {
  if (!op.Has("m8n8") || op.type() != Type::kB16) return nullptr;
  in.offset = op.Has("x4") ? 4 : op.Has("x2") ? 2 : 1;
  return op.Has("trans") ? &LdMatrix<true> : &LdMatrix<false>;
}

Handler FindMma(const Opcode& op, Instruction& in) {
  Shape s;
  if (!ReadShape(op, s) || op.Has("sp") || !op.Has("row") || !op.Has("col") || s.m != 16 || s.n != 8) return nullptr;
  // types: d, a, b, c; tf32 is no register type and is left among the modifiers
  const bool tf32 = op.Has("tf32");
  if (tf32) {
    s.input = Element::kTf32;
    if (op.type_count != 2 || (s.k != 4 && s.k != 8)) return nullptr;
  } else if (op.type_count != 4 || !ElementOf(op.types[1], s.input) || BytesOf(s.input) != 2 ||
             op.types[1] != op.types[2] || (s.k != 8 && s.k != 16)) {
    return nullptr;
  }
  if (!ElementOf(op.types[0], s.result) || !ElementOf(op.types[static_cast<size_t>(op.type_count - 1)], s.sum))
    return nullptr;
  if (s.result == Element::kBf16 || s.sum == Element::kBf16) return nullptr;
  in.offset = s.Pack();
  return &Mma;
}

}  // namespace kgrpo::simt
