// Tensor core instructions: ldmatrix, mma.sync and wmma.
//
// mma.sync's fragments lie as the PTX manual says. wmma's are opaque: here lane l holds elements l * n/32 ... of the
// matrix in the order in which it lies in memory (accumulators: row by row), and what is left of its registers repeats
// them. Sums are taken in double precision and rounded once: a tensor core keeps fewer bits, differently on each
// generation.
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "evaluator_sim/simt/access.h"
#include "evaluator_sim/simt/counter.h"
#include "evaluator_sim/simt/half_float.h"
#include "evaluator_sim/simt/handlers.h"

namespace kgrpo::simt {
namespace {

// What Instruction::offset holds of a matrix instruction.
enum class Element : uint8_t { kF16, kBf16, kTf32, kF32 };
struct Shape {
  uint32_t m = 0, n = 0, k = 0;
  Element input = Element::kF16, sum = Element::kF32, result = Element::kF32;
  bool a_by_column = false, b_by_column = false;  // how the matrix lies in memory (and so in wmma's fragments)
  enum class Part : uint8_t { kA, kB, kC } part = Part::kA;

  int64_t Pack() const {
    return static_cast<int64_t>(m | n << 8 | k << 16 | static_cast<uint32_t>(input) << 24 |
                                static_cast<uint32_t>(sum) << 26 | static_cast<uint32_t>(result) << 28) |
           (int64_t{a_by_column} << 32) | (int64_t{b_by_column} << 33) | (static_cast<int64_t>(part) << 34);
  }
  static Shape Unpack(int64_t packed) {
    const auto bits = static_cast<uint64_t>(packed);
    Shape s;
    s.m = bits & 0xFF;
    s.n = bits >> 8 & 0xFF;
    s.k = bits >> 16 & 0xFF;
    s.input = static_cast<Element>(bits >> 24 & 3);
    s.sum = static_cast<Element>(bits >> 26 & 3);
    s.result = static_cast<Element>(bits >> 28 & 3);
    s.a_by_column = (bits >> 32 & 1) != 0;
    s.b_by_column = (bits >> 33 & 1) != 0;
    s.part = static_cast<Part>(bits >> 34 & 3);
    return s;
  }
};

bool ReadShape(const Opcode& op, Shape& shape) {
  for (int i = 0; i < op.modifier_count; ++i) {
    const std::string_view text = op.modifiers[static_cast<size_t>(i)];
    if (text.size() < 6 || text[0] != 'm' || text.find('n') == std::string_view::npos) continue;
    const char* end = text.data() + text.size();
    auto [at, error] = std::from_chars(text.data() + 1, end, shape.m);
    if (error != std::errc{} || at == end || *at != 'n') continue;
    std::tie(at, error) = [&] {
      const auto r = std::from_chars(at + 1, end, shape.n);
      return std::pair{r.ptr, r.ec};
    }();
    if (at == end || *at != 'k') continue;
    std::from_chars(at + 1, end, shape.k);
    return true;
  }
  return false;
}

bool ElementOf(Type type, Element& element) {
  switch (type) {
    case Type::kF16:
      element = Element::kF16;
      return true;
    case Type::kBf16:
      element = Element::kBf16;
      return true;
    case Type::kF32:
      element = Element::kF32;
      return true;
    default:
      return false;
  }
}

uint32_t BytesOf(Element element) {
  return element == Element::kF16 || element == Element::kBf16 ? 2 : 4;
}

double Widen(uint32_t bits, Element element) {
  switch (element) {
    case Element::kF16:
      return static_cast<double>(HalfToFloat(bits & 0xFFFFu));
    case Element::kBf16:
      return static_cast<double>(Bf16ToFloat(bits & 0xFFFFu));
    case Element::kTf32:
      return static_cast<double>(std::bit_cast<float>(bits & 0xFFFFE000u));
    case Element::kF32:
      return static_cast<double>(std::bit_cast<float>(bits));
  }
  return 0;
}
uint32_t Narrow(double value, Element element) {
  if (element == Element::kF16) return DoubleToHalf(value);
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}

// Element `slot` of a fragment in lane `lane`, whose registers are operands[0...].
uint32_t Get(const Warp& warp, const Operand* operands, int lane, uint32_t slot, Element element) {
  if (BytesOf(element) == 4) return SourceAs<uint32_t>(warp, operands[slot])[lane];
  return SourceAs<uint32_t>(warp, operands[slot / 2])[lane] >> (16 * (slot % 2)) & 0xFFFFu;
}
void Set(Warp& warp, const Operand* operands, int lane, uint32_t slot, Element element, uint32_t bits) {
  if (BytesOf(element) == 4) {
    TargetAs<uint32_t>(warp, operands[slot])[lane] = bits;
    return;
  }
  uint32_t& word = TargetAs<uint32_t>(warp, operands[slot / 2])[lane];
  const uint32_t shift = 16 * (slot % 2);
  word = (word & ~(0xFFFFu << shift)) | bits << shift;
}

void NeedWholeWarp(Warp& warp, const Instruction& in, uint32_t mask) {
  if (mask == kAllLanes) return;
  Report(warp, in.index, std::countr_zero(mask), FindingCode::kInvalidShuffle, true, 0, "",
         "executes a matrix operation of the whole warp with only a part of it");
  throw Fault{};
}

using Matrix = std::array<double, 32 * 32>;

void Multiply(const Shape& s, const Matrix& a, const Matrix& b, Matrix& c) {
  for (uint32_t i = 0; i < s.m; ++i) {
    for (uint32_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (uint32_t k = 0; k < s.k; ++k) sum += a[i * s.k + k] * b[k * s.n + j];
      c[i * s.n + j] += sum;
    }
  }
}

// ---- mma.sync m16n8k* ----

void Mma(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const Shape s = Shape::Unpack(in.offset);
  const bool narrow = BytesOf(s.input) == 2;
  const uint32_t a_slots = s.m * s.k / kLanes, b_slots = s.k * s.n / kLanes;
  const uint32_t packed = narrow ? 2 : 1;
  const uint32_t c_registers = BytesOf(s.sum) == 2 ? 2 : 4, d_registers = BytesOf(s.result) == 2 ? 2 : 4;
  const Operand* d = &warp.grid->kernel->operands[in.extra];
  const Operand* a = d + d_registers;
  const Operand* b = a + a_slots / packed;
  const Operand* c = b + b_slots / packed;
  (void)c_registers;
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
      am[row * s.k + column] = Widen(Get(warp, a, lane, i, s.input), s.input);
    }
    for (uint32_t i = 0; i < b_slots; ++i) {
      const uint32_t row = narrow ? within * 2 + i % 2 + i / 2 * 8 : within + i * 4;
      bm[row * s.n + group] = Widen(Get(warp, b, lane, i, s.input), s.input);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      cm[(group + i / 2 * 8) * s.n + within * 2 + i % 2] = Widen(Get(warp, c, lane, i, s.sum), s.sum);
    }
  }
  Multiply(s, am, bm, cm);
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto group = static_cast<uint32_t>(lane) / 4, within = static_cast<uint32_t>(lane) % 4;
    for (uint32_t i = 0; i < 4; ++i)
      Set(warp, d, lane, i, s.result, Narrow(cm[(group + i / 2 * 8) * s.n + within * 2 + i % 2], s.result));
  }
}

// ---- ldmatrix ----

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
    CheckInitialised(warp, in, addressing, access);
    CheckLoadOrder(warp, in, addressing, access);
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

// ---- wmma ----

struct Fragment {
  uint32_t rows, columns;
  Element element;
  bool by_column;      // the order of its elements
  uint32_t per_lane;   // distinct elements a lane
  uint32_t registers;  // 32-bit
};
Fragment FragmentOf(const Shape& s, Shape::Part part, Element accumulator) {
  Fragment f{};
  switch (part) {
    case Shape::Part::kA:
      f = {s.m, s.k, s.input, s.a_by_column, 0, 0};
      break;
    case Shape::Part::kB:
      f = {s.k, s.n, s.input, s.b_by_column, 0, 0};
      break;
    case Shape::Part::kC:
      f = {s.m, s.n, accumulator, false, 0, 0};
      break;
  }
  f.per_lane = f.rows * f.columns / kLanes;
  // f16 inputs take 8 registers whatever the shape; the others just enough.
  f.registers = part != Shape::Part::kC && f.element == Element::kF16 ? 8 : f.per_lane * BytesOf(f.element) / 4;
  return f;
}
// Row and column of element `index` in the fragment's order.
std::pair<uint32_t, uint32_t> PlaceOf(const Fragment& f, uint32_t index) {
  return f.by_column ? std::pair{index % f.rows, index / f.rows} : std::pair{index / f.columns, index % f.columns};
}

// Loads or stores a fragment. The address and stride are those of the first lane, as they must be the same for all.
template <bool kLoad>
void WmmaMemory(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const Shape s = Shape::Unpack(in.offset);
  const Fragment f = FragmentOf(s, s.part, s.sum);
  // How the matrix lies in memory: for an accumulator not the order of the fragment.
  const bool by_column = s.part == Shape::Part::kC ? s.a_by_column : f.by_column;
  const uint32_t bytes = BytesOf(f.element);
  const uint64_t stride = in.b == kNoOperand ? (by_column ? f.rows : f.columns) : SourceAs<uint32_t>(warp, in.b)[0];
  const uint64_t base =
      (in.flags & kFlagShared32) != 0 ? SourceAs<uint32_t>(warp, in.a)[0] : SourceAs<uint64_t>(warp, in.a)[0];
  const Operand* registers = &warp.grid->kernel->operands[in.extra];
  // Neighbouring elements of a lane are accessed together, up to 16 bytes.
  const uint32_t run = by_column == f.by_column ? std::min(f.per_lane, 16 / bytes) : 1;
  Instruction plain = in;
  plain.offset = 0;
  for (uint32_t slot = 0; slot < f.per_lane; slot += run) {
    Access access;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = PlaceOf(f, lane * f.per_lane + slot);
      access.address[lane] = base + bytes * (by_column ? column * stride + row : row * stride + column);
    }
    const AccessKind kind = kLoad ? AccessKind::kLoad : AccessKind::kStore;
    ResolveAddresses(warp, plain, mask, run * bytes, kind, static_cast<Space>(in.space), access);
    if (warp.grid->counter != nullptr) warp.grid->counter->CountAccess(warp, plain, mask, access, kind);
    if (kLoad && warp.grid->checked) {
      CheckInitialised(warp, in, mask, access);
      CheckLoadOrder(warp, in, mask, access);
    }
    if (!kLoad) MarkWritten(warp, mask, access);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!kLoad && warp.grid->checked) CheckStoreOrder(warp, in, lane, access, kind, true);
      for (uint32_t i = 0; i < run; ++i) {
        std::byte* at = access.At(lane) + i * bytes;
        uint32_t bits = 0;
        if (kLoad) {
          std::memcpy(&bits, at, bytes);
          for (uint32_t copy = slot + i; copy < f.registers * 4 / bytes; copy += f.per_lane)
            Set(warp, registers, lane, copy, f.element, bits);
        } else {
          bits = Get(warp, registers, lane, slot + i, f.element);
          std::memcpy(at, &bits, bytes);
        }
      }
    }
  }
}

void WmmaMultiply(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const Shape s = Shape::Unpack(in.offset);
  const Fragment fa = FragmentOf(s, Shape::Part::kA, s.sum), fb = FragmentOf(s, Shape::Part::kB, s.sum),
                 fc = FragmentOf(s, Shape::Part::kC, s.sum), fd = FragmentOf(s, Shape::Part::kC, s.result);
  const Operand* d = &warp.grid->kernel->operands[in.extra];
  const Operand* a = d + fd.registers;
  const Operand* b = a + fa.registers;
  const Operand* c = b + fb.registers;
  Matrix am, bm, cm;
  auto gather = [&](const Fragment& f, const Operand* registers, Matrix& matrix) {
    for (uint32_t index = 0; index < f.rows * f.columns; ++index) {
      const auto [row, column] = PlaceOf(f, index);
      matrix[row * f.columns + column] =
          Widen(Get(warp, registers, static_cast<int>(index / f.per_lane), index % f.per_lane, f.element), f.element);
    }
  };
  gather(fa, a, am);
  gather(fb, b, bm);
  gather(fc, c, cm);
  Multiply(s, am, bm, cm);
  for (uint32_t index = 0; index < fd.rows * fd.columns; ++index) {
    Set(warp, d, static_cast<int>(index / fd.per_lane), index % fd.per_lane, fd.element, Narrow(cm[index], fd.element));
  }
}

}  // namespace

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

Handler FindWmma(const Opcode& op, Instruction& in) {
  Shape s;
  if (!ReadShape(op, s)) return nullptr;
  const bool tf32 = op.Has("tf32");
  const bool known = (s.m == 16 && s.n == 16 && (s.k == 16 || s.k == 8)) || (s.m == 32 && s.n == 8 && s.k == 16) ||
                     (s.m == 8 && s.n == 32 && s.k == 16);
  if (!known || tf32 != (s.k == 8)) return nullptr;
  if (op.Has("load") || op.Has("store")) {
    Element element = Element::kTf32;
    if (!tf32 && !ElementOf(op.type(), element)) return nullptr;
    s.part = op.Has("a") ? Shape::Part::kA : op.Has("b") ? Shape::Part::kB : Shape::Part::kC;
    if (s.part == Shape::Part::kC) {
      if (tf32) element = Element::kF32;
      s.sum = element;
    } else {
      s.input = element;
    }
    s.a_by_column = s.b_by_column = op.Has("col");
    in.offset = s.Pack();
    return op.Has("load") ? &WmmaMemory<true> : &WmmaMemory<false>;
  }
  if (!op.Has("mma")) return nullptr;
  // .row.col says how a and b lie; the first is a's.
  int seen = 0;
  for (int i = 0; i < op.modifier_count; ++i) {
    const std::string_view text = op.modifiers[static_cast<size_t>(i)];
    if (text != "row" && text != "col") continue;
    (seen++ == 0 ? s.a_by_column : s.b_by_column) = text == "col";
  }
  if (seen != 2) return nullptr;
  // f16 inputs go unnamed: ".f32.f32" are d and c. Others name all four.
  if (tf32) {
    s.input = Element::kTf32;
  } else if (op.type_count == 4) {
    if (!ElementOf(op.types[1], s.input) || s.input != Element::kBf16) return nullptr;
  } else if (op.type_count != 2) {
    return nullptr;
  }
  if (!ElementOf(op.types[0], s.result) || !ElementOf(op.types[static_cast<size_t>(op.type_count - 1)], s.sum))
    return nullptr;
  in.offset = s.Pack();
  return &WmmaMultiply;
}

double MatrixOperations(const Instruction& in) {
  const Shape s = Shape::Unpack(in.offset);
  return in.run == &Mma || in.run == &WmmaMultiply ? 2.0 * s.m * s.n * s.k : 0.0;
}

}  // namespace kgrpo::simt
