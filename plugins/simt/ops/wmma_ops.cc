// wmma. Its fragments are opaque: here lane l holds elements l * n/32 ... of the matrix in the order of memory
// (accumulators: row by row). Its further registers repeat them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "simt/alu/matrix.h"
#include "simt/check/access.h"
#include "simt/check/access_counter.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

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
    case Shape::Part::kA: f = {s.m, s.k, s.input, s.a_by_column, 0, 0}; break;
    case Shape::Part::kB: f = {s.k, s.n, s.input, s.b_by_column, 0, 0}; break;
    case Shape::Part::kC: f = {s.m, s.n, accumulator, false, 0, 0}; break;
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

// A fragment in memory. The address and stride are those of the first lane, as they must be the same for all.
struct Placed {
  Placed(const Warp& warp, const Instruction& in)
      : s(Shape::Unpack(in.offset)),
        f(FragmentOf(s, s.part, s.sum)),
        by_column(s.part == Shape::Part::kC ? s.a_by_column : f.by_column),
        bytes(BytesOf(f.element)),
        run(by_column == f.by_column ? std::min(f.per_lane, 16 / bytes) : 1),
        stride(in.b == kNoOperand ? (by_column ? f.rows : f.columns) : SourceAs<uint32_t>(warp, in.b)[0]),
        base((in.flags & kFlagShared32) != 0 ? SourceAs<uint32_t>(warp, in.a)[0] : SourceAs<uint64_t>(warp, in.a)[0]) {}
  uint64_t AddressOf(uint32_t lane, uint32_t slot) const {
    const auto [row, column] = PlaceOf(f, lane * f.per_lane + slot);
    return base + bytes * (by_column ? column * stride + row : row * stride + column);
  }
  const Shape s;
  const Fragment f;
  const bool by_column;  // the matrix's layout in memory, which for an accumulator is not the fragment's order
  const uint32_t bytes;  // of an element
  const uint32_t run;    // neighbouring elements of a lane that are accessed together, up to 16 bytes
  const uint64_t stride, base;
};

// Bytes of a lane's access when a GPU loads or stores a fragment in global memory.
uint32_t AccessBytes(const Fragment& f, const Shape& s) {
  const uint32_t bytes = BytesOf(f.element);
  if (s.part != Shape::Part::kC) return 4;
  return s.a_by_column ? bytes : 2 * bytes;
}

// Counts the accesses of a GPU, each to 8 lines of 4 lanes (as sm_90's machine code), or of an accumulator by columns
// to 4 columns of 8 lanes.
void CountFragment(Warp& warp, const Instruction& in, uint32_t mask, uint64_t base, uint64_t stride, AccessKind kind) {
  const Shape s = Shape::Unpack(in.offset);
  const Fragment f = FragmentOf(s, s.part, s.sum);
  const uint32_t bytes = BytesOf(f.element), size = AccessBytes(f, s), each = size / bytes;
  const bool columns = s.part == Shape::Part::kC && s.a_by_column;
  const uint32_t tiles = columns ? f.rows / 8 : (f.by_column ? f.rows : f.columns) / (4 * each);
  Instruction plain = in;
  plain.offset = 0;
  for (uint32_t i = 0; i < FragmentAccesses(in); ++i) {
    Access access;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t tile = columns ? i / 2 : i;
      const uint32_t line = tile / tiles * 8 + (columns ? lane % 4 * 2 + i % 2 : lane / 4);
      const uint32_t at = columns ? tile % tiles * 8 + lane / 4 : (tile % tiles * 4 + lane % 4) * each;
      access.address[lane] = base + bytes * (line * stride + at);
    }
    ResolveAddresses(warp, plain, mask, size, kind, static_cast<Space>(in.space), access);
    warp.grid->counter->CountAccess(warp, plain, mask, access, kind);
  }
}

// Loads or stores a fragment. The address and stride are those of the first lane, as they must be the same for all.
template <bool kLoad>
void WmmaMemory(Warp& warp, const Instruction& in, uint32_t mask) {
  NeedWholeWarp(warp, in, mask);
  const Placed placed(warp, in);
  const Fragment& f = placed.f;
  const uint32_t bytes = placed.bytes, run = placed.run;
  const Operand* registers = &warp.grid->kernel->operands[in.extra];
  Instruction plain = in;
  plain.offset = 0;
  for (uint32_t slot = 0; slot < f.per_lane; slot += run) {
    Access access;
    for (uint32_t lane = 0; lane < kLanes; ++lane) access.address[lane] = placed.AddressOf(lane, slot);
    const AccessKind kind = kLoad ? AccessKind::kLoad : AccessKind::kStore;
    ResolveAddresses(warp, plain, mask, run * bytes, kind, static_cast<Space>(in.space), access);
    if (warp.grid->counter != nullptr && access.space != Space::kGlobal) {
      warp.grid->counter->CountAccess(warp, plain, mask, access, kind);
    } else if (warp.grid->counter != nullptr && slot == 0) {
      CountFragment(warp, in, mask, placed.base, placed.stride, kind);
    }
    if (kLoad && warp.grid->checked) {
      access.target = Access::Target::kFragment;
      CheckInitialised(warp, in, mask, access, 0, true);
      CheckLoadOrder(warp, in, mask, access, IsWatched(*warp.grid->kernel, in) ? 1 : 0);
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
            SetElement(warp, registers, lane, copy, f.element, bits);
        } else {
          bits = GetElement(warp, registers, lane, slot + i, f.element);
          std::memcpy(at, &bits, bytes);
        }
      }
    }
  }
  if (kLoad && warp.suspicious) SetSuspects(warp, in, mask);
}

}  // namespace

bool ForWmmaStored(const Warp& warp, const Instruction& in, const std::function<void(uint64_t, uint32_t)>& each) {
  if (in.run != &WmmaMemory<false>) return false;
  const Placed placed(warp, in);
  for (uint32_t slot = 0; slot < placed.f.per_lane; slot += placed.run)
    for (uint32_t lane = 0; lane < kLanes; ++lane) each(placed.AddressOf(lane, slot), placed.run * placed.bytes);
  return true;
}

uint32_t FragmentAccesses(const Instruction& in) {
  const Shape s = Shape::Unpack(in.offset);
  const Fragment f = FragmentOf(s, s.part, s.sum);
  return f.per_lane * BytesOf(f.element) / AccessBytes(f, s);
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
      matrix[row * f.columns + column] = Widen(
          GetElement(warp, registers, static_cast<int>(index / f.per_lane), index % f.per_lane, f.element), f.element);
    }
  };
  gather(fa, a, am);
  gather(fb, b, bm);
  gather(fc, c, cm);
  Multiply(s, am, bm, cm);
  for (uint32_t index = 0; index < fd.rows * fd.columns; ++index) {
    if (s.saturates) cm[index] = std::clamp(cm[index], -0x1p31, 0x1p31 - 1);
    SetElement(warp, d, static_cast<int>(index / fd.per_lane), index % fd.per_lane, fd.element,
               Narrow(cm[index], fd.element));
  }
}

namespace {

// Integers too, which mma.sync multiplies elsewhere.
bool ElementOfFragment(Type type, Element& element) {
  if (type != Type::kS8 && type != Type::kU8 && type != Type::kS32) return ElementOf(type, element);
  element = type == Type::kS8 ? Element::kS8 : type == Type::kU8 ? Element::kU8 : Element::kS32;
  return true;
}

bool IsByte(Element element) { return element == Element::kS8 || element == Element::kU8; }

}  // namespace

Handler FindWmma(const Opcode& op, Instruction& in) {
  Shape s;
  if (!ReadShape(op, s)) return nullptr;
  const bool tf32 = op.Has("tf32");
  const bool known = (s.m == 16 && s.n == 16 && (s.k == 16 || s.k == 8)) || (s.m == 32 && s.n == 8 && s.k == 16) ||
                     (s.m == 8 && s.n == 32 && s.k == 16);
  // Accumulators of tf32 products are f32, and their loads and stores name nothing else.
  const bool accumulator = (op.Has("c") || op.Has("d")) && op.type() == Type::kF32 && !op.Has("mma");
  if (!known || (tf32 != (s.k == 8) && !(s.k == 8 && accumulator))) return nullptr;
  if (op.Has("load") || op.Has("store")) {
    Element element = Element::kTf32;
    if (!tf32 && !ElementOfFragment(op.type(), element)) return nullptr;
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
  // .row.col gives the layouts of a and b; the first is a's.
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
    if (!ElementOfFragment(op.types[1], s.input) || op.types[2] != op.types[1]) return nullptr;
    if (s.input != Element::kBf16 && !IsByte(s.input)) return nullptr;
  } else if (op.type_count != 2) {
    return nullptr;
  }
  if (!ElementOfFragment(op.types[0], s.result) ||
      !ElementOfFragment(op.types[static_cast<size_t>(op.type_count - 1)], s.sum))
    return nullptr;
  // Bytes are summed in integers; no other type is.
  if (IsByte(s.input) != (s.result == Element::kS32) || IsByte(s.input) != (s.sum == Element::kS32)) return nullptr;
  s.saturates = IsByte(s.input) && op.Has("satfinite");
  in.offset = s.Pack();
  return &WmmaMultiply;
}

}  // namespace kgrpo::simt
