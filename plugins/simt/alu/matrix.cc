#include "simt/alu/matrix.h"

#include <charconv>
#include <string_view>
#include <system_error>

#include "simt/state/handlers.h"

namespace kgrpo::simt {

bool ReadShape(const Opcode& op, Shape& shape) {
  for (int i = 0; i < op.modifier_count; ++i) {
    const std::string_view text = op.modifiers[static_cast<size_t>(i)];
    if (text.size() < 6 || text[0] != 'm' || text.find('n') == std::string_view::npos) continue;
    const char* end = text.data() + text.size();
    const auto m = std::from_chars(text.data() + 1, end, shape.m);
    if (m.ec != std::errc{} || m.ptr == end || *m.ptr != 'n') continue;
    const auto n = std::from_chars(m.ptr + 1, end, shape.n);
    if (n.ptr == end || *n.ptr != 'k') continue;
    std::from_chars(n.ptr + 1, end, shape.k);
    return true;
  }
  return false;
}

bool ElementOf(Type type, Element& element) {
  switch (type) {
    case Type::kF16: element = Element::kF16; return true;
    case Type::kBf16: element = Element::kBf16; return true;
    case Type::kF32: element = Element::kF32; return true;
    default: return false;
  }
}

void NeedWholeWarp(Warp& warp, const Instruction& in, uint32_t mask) {
  if (mask == kAllLanes) return;
  Report(warp, in.index, std::countr_zero(mask), FindingCode::kInvalidShuffle, true, 0, "",
         "executes a matrix operation of the whole warp with only a part of it");
  throw Fault{};
}

double MatrixOperations(const Instruction& in) {
  const Shape s = Shape::Unpack(in.offset);
  return in.run == &Mma || in.run == &WmmaMultiply ? 2.0 * s.m * s.n * s.k : 0.0;
}

}  // namespace kgrpo::simt
