#include "simt/schedule/intervals.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace kgrpo::simt {
namespace {

Wide FloorDiv(Wide a, Wide b) {  // b > 0
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

template <typename F>
Interval OfCorners(const Interval& a, const Interval& b, F f) {
  const Wide corners[] = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}

}  // namespace

Interval Within(Interval value, Type type) {
  const uint32_t bits = 8 * TypeBytes(type);
  const Wide size = Wide{1} << bits, least = TypeIsSigned(type) ? -(size / 2) : Wide{0};
  const Wide turn = FloorDiv(value.low - least, size);
  if (turn == FloorDiv(value.high - least, size)) return {value.low - turn * size, value.high - turn * size};
  return {least, least + size - 1};
}

Interval Apply(Operation operation, Type type, const Interval& a, const Interval& b, const Interval& c, bool* any) {
  const auto product = [](Wide x, Wide y) { return x * y; };
  const auto bits = static_cast<int>(8 * TypeBytes(type));
  const bool one = b.low == b.high;
  switch (operation) {
    case Operation::kAdd: return {a.low + b.low, a.high + b.high};
    case Operation::kSub: return {a.low - b.high, a.high - b.low};
    case Operation::kMulLo:
    case Operation::kMulWide:
      if (bits == 64 && (std::max(a.high, -a.low) >> 62) != 0 && (std::max(b.high, -b.low) >> 62) != 0) break;
      return OfCorners(a, b, product);
    case Operation::kMadLo:
    case Operation::kMadWide: {
      if (bits == 64 && (std::max(a.high, -a.low) >> 62) != 0 && (std::max(b.high, -b.low) >> 62) != 0) break;
      const Interval p = OfCorners(a, b, product);
      return {p.low + c.low, p.high + c.high};
    }
    case Operation::kMulHi: {
      if (bits == 64 && ((std::max(a.high, -a.low) >> 63) != 0 || (std::max(b.high, -b.low) >> 63) != 0)) break;
      const Interval p = OfCorners(a, b, product);
      return {p.low >> bits, p.high >> bits};
    }
    case Operation::kDiv:
      if (b.low <= 0) break;
      return OfCorners(a, b, [](Wide x, Wide y) { return x / y; });
    case Operation::kRem:
      if (!one || b.low <= 0) break;
      if (a.low >= 0 && a.low / b.low == a.high / b.low) return {a.low % b.low, a.high % b.low};
      return {a.low < 0 ? 1 - b.low : Wide{0}, a.high > 0 ? b.low - 1 : Wide{0}};
    case Operation::kShl:
      if (!one || b.low < 0 || b.low >= bits) break;
      return {a.low * (Wide{1} << b.low), a.high * (Wide{1} << b.low)};
    case Operation::kShr:
      if (!one || b.low < 0 || b.low >= bits) break;
      return {a.low >> b.low, a.high >> b.low};
    case Operation::kAnd: {
      if (a.low < 0 || b.low < 0) break;
      const Interval &x = one ? a : b, &m = one ? b : a;
      if (m.low == m.high) {
        const Wide mask = m.low, size = Wide{1} << bits;
        if ((mask & (mask + 1)) == 0 && x.low / (mask + 1) == x.high / (mask + 1)) return {x.low & mask, x.high & mask};
        const Wide hole = size - mask;  // a mask of all upper bits keeps the order
        if (mask != 0 && (hole & (hole - 1)) == 0) return {x.low & mask, x.high & mask};
      }
      return {Wide{0}, std::min(a.high, b.high)};
    }
    case Operation::kOr:
      if (a.low < 0 || b.low < 0) break;
      return {std::max(a.low, b.low), a.high + b.high};
    case Operation::kMin: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Operation::kMax: return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Operation::kNeg: return {-a.high, -a.low};
    case Operation::kNot: return {-1 - a.high, -1 - a.low};
    case Operation::kCopy:
    case Operation::kConvert: return a;
    default: break;
  }
  *any = true;
  return {};
}

int Holds(Relation relation, const Interval& a, const Interval& b) {
  switch (relation) {
    case Relation::kEq:
      return a.low == a.high && b.low == b.high && a.low == b.low ? 1 : a.high < b.low || b.high < a.low ? 0 : -1;
    case Relation::kNe: {
      const int equal = Holds(Relation::kEq, a, b);
      return equal < 0 ? -1 : 1 - equal;
    }
    case Relation::kLt: return a.high < b.low ? 1 : a.low >= b.high ? 0 : -1;
    case Relation::kLe: return a.high <= b.low ? 1 : a.low > b.high ? 0 : -1;
    case Relation::kGt: return Holds(Relation::kLt, b, a);
    case Relation::kGe: return Holds(Relation::kLe, b, a);
  }
  return -1;
}

}  // namespace kgrpo::simt
