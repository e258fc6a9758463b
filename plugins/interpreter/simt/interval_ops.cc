#include "interpreter/simt/interval_ops.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <unordered_map>

#include "interpreter/simt/handlers.h"

namespace kgrpo::simt {
namespace {

__extension__ using Wide = __int128;

enum class Operation : uint8_t {
  kCopy,
  kAdd,
  kSub,
  kMulLo,
  kMulHi,
  kMulWide,
  kMadLo,
  kMadWide,
  kDiv,
  kRem,
  kShl,
  kShr,
  kAnd,
  kOr,
  kMin,
  kMax,
  kNeg,
  kNot,
  kConvert,
  kSelect,
  kCompare,
  kPredicate,
};
enum class Relation : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class Logic : uint8_t { kMove, kNot, kAnd, kOr, kXor };

struct Meaning {
  Operation operation = Operation::kCopy;
  Type type = Type::kU32;  // of the sources
  Type to = Type::kU32;    // of the result
  Relation relation = Relation::kEq;
  Logic logic = Logic::kMove;
};

// What the handlers that FindAlu chooses for integers do. Types of one width may share a handler: then they mean the
// same.
const std::unordered_map<Handler, Meaning>& Meanings() {
  static const std::unordered_map<Handler, Meaning> kMeanings = [] {
    std::unordered_map<Handler, Meaning> all;
    const auto add = [&](const std::string& name, const Meaning& meaning) {
      if (const AluChoice choice = FindAlu(Opcode(name)); choice.handler != nullptr)
        all.emplace(choice.handler, meaning);
    };
    struct Named {
      const char* name;
      Type type;
      Type twice;
    };
    const Named types[] = {{"u32", Type::kU32, Type::kU64},
                           {"s32", Type::kS32, Type::kS64},
                           {"u64", Type::kU64, Type::kU64},
                           {"s64", Type::kS64, Type::kS64}};
    const std::pair<const char*, Operation> plain[] = {
        {"mov", Operation::kCopy},     {"add", Operation::kAdd},      {"sub", Operation::kSub},
        {"mul.lo", Operation::kMulLo}, {"mul.hi", Operation::kMulHi}, {"mad.lo", Operation::kMadLo},
        {"div", Operation::kDiv},      {"rem", Operation::kRem},      {"shr", Operation::kShr},
        {"min", Operation::kMin},      {"max", Operation::kMax},      {"neg", Operation::kNeg},
        {"selp", Operation::kSelect}};
    const std::pair<const char*, Relation> relations[] = {
        {"eq", Relation::kEq}, {"ne", Relation::kNe}, {"lt", Relation::kLt}, {"le", Relation::kLe},
        {"gt", Relation::kGt}, {"ge", Relation::kGe}, {"lo", Relation::kLt}, {"ls", Relation::kLe},
        {"hi", Relation::kGt}, {"hs", Relation::kGe}};
    for (const Named& type : types) {
      const std::string suffix = std::string(".") + type.name;
      for (const auto& [name, operation] : plain)
        add(name + suffix, {.operation = operation, .type = type.type, .to = type.type});
      for (const auto& [name, relation] : relations)
        add(std::string("setp.") + name + suffix,
            {.operation = Operation::kCompare, .type = type.type, .relation = relation});
      if (TypeBytes(type.type) == 4) {
        add("mul.wide" + suffix, {.operation = Operation::kMulWide, .type = type.type, .to = type.twice});
        add("mad.wide" + suffix, {.operation = Operation::kMadWide, .type = type.type, .to = type.twice});
      }
      for (const Named& to : types)
        add(std::string("cvt.") + to.name + suffix,
            {.operation = Operation::kConvert, .type = type.type, .to = to.type});
    }
    for (const auto& [bits, type] : {std::pair{".b32", Type::kU32}, {".b64", Type::kU64}}) {
      const std::pair<const char*, Operation> bitwise[] = {{"mov", Operation::kCopy}, {"shl", Operation::kShl},
                                                           {"and", Operation::kAnd},  {"or", Operation::kOr},
                                                           {"not", Operation::kNot},  {"selp", Operation::kSelect}};
      for (const auto& [name, operation] : bitwise)
        add(std::string(name) + bits, {.operation = operation, .type = type, .to = type});
    }
    const std::pair<const char*, Logic> logic[] = {{"mov.pred", Logic::kMove},
                                                   {"not.pred", Logic::kNot},
                                                   {"and.pred", Logic::kAnd},
                                                   {"or.pred", Logic::kOr},
                                                   {"xor.pred", Logic::kXor}};
    for (const auto& [name, which] : logic) add(name, {.operation = Operation::kPredicate, .logic = which});
    return all;
  }();
  return kMeanings;
}

Wide FloorDiv(Wide a, Wide b) {  // b > 0
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// The integers of a type that are the same bits as those from `low` to `high`, or all of it where these wrap around.
template <typename Range>
Range Within(Range value, Type type) {
  const uint32_t bits = 8 * TypeBytes(type);
  const Wide size = Wide{1} << bits, least = TypeIsSigned(type) ? -(size / 2) : Wide{0};
  const Wide turn = FloorDiv(value.low - least, size);
  if (turn == FloorDiv(value.high - least, size)) return {value.low - turn * size, value.high - turn * size};
  return {least, least + size - 1};
}

template <typename Range, typename F>
Range OfCorners(const Range& a, const Range& b, F f) {
  const Wide corners[] = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}

// What the operation makes of operands within these ranges, as mathematics has it; `*any` where that is not known.
template <typename Range>
Range Result(Operation operation, Type type, const Range& a, const Range& b, const Range& c, bool* any) {
  const auto product = [](Wide x, Wide y) { return x * y; };
  const auto bits = static_cast<int>(8 * TypeBytes(type));
  const bool one = b.low == b.high;
  switch (operation) {
    case Operation::kAdd:
      return {a.low + b.low, a.high + b.high};
    case Operation::kSub:
      return {a.low - b.high, a.high - b.low};
    case Operation::kMulLo:
    case Operation::kMulWide:
      if (bits == 64 && (std::max(a.high, -a.low) >> 62) != 0 && (std::max(b.high, -b.low) >> 62) != 0) break;
      return OfCorners(a, b, product);
    case Operation::kMadLo:
    case Operation::kMadWide: {
      if (bits == 64 && (std::max(a.high, -a.low) >> 62) != 0 && (std::max(b.high, -b.low) >> 62) != 0) break;
      const Range p = OfCorners(a, b, product);
      return {p.low + c.low, p.high + c.high};
    }
    case Operation::kMulHi: {
      if (bits == 64 && ((std::max(a.high, -a.low) >> 63) != 0 || (std::max(b.high, -b.low) >> 63) != 0)) break;
      const Range p = OfCorners(a, b, product);
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
      const Range &x = one ? a : b, &m = one ? b : a;
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
    case Operation::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Operation::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Operation::kNeg:
      return {-a.high, -a.low};
    case Operation::kNot:
      return {-1 - a.high, -1 - a.low};
    case Operation::kCopy:
    case Operation::kConvert:
      return a;
    default:
      break;
  }
  *any = true;
  return {};
}

// Whether the relation holds for all (1), for none (0) or perhaps (-1).
template <typename Range>
int Holds(Relation relation, const Range& a, const Range& b) {
  switch (relation) {
    case Relation::kEq:
      return a.low == a.high && b.low == b.high && a.low == b.low ? 1 : a.high < b.low || b.high < a.low ? 0 : -1;
    case Relation::kNe: {
      const int equal = Holds(Relation::kEq, a, b);
      return equal < 0 ? -1 : 1 - equal;
    }
    case Relation::kLt:
      return a.high < b.low ? 1 : a.low >= b.high ? 0 : -1;
    case Relation::kLe:
      return a.high <= b.low ? 1 : a.low > b.high ? 0 : -1;
    case Relation::kGt:
      return Holds(Relation::kLt, b, a);
    case Relation::kGe:
      return Holds(Relation::kLe, b, a);
  }
  return -1;
}

uint32_t Flip(const Instruction& in) {
  return (in.flags & kFlagNegateC) != 0 ? kAllLanes : 0u;
}

}  // namespace

IntervalRegisters::IntervalRegisters(const Kernel& kernel)
    : predicate_bytes_(kernel.control.predicate_bytes),
      spread_at_(kernel.register_bytes / kGranule + 2, -1),
      unknown_(predicate_bytes_ / 4 + 1, 0),
      unknown_depends_(predicate_bytes_ / 4 + 1, 0) {}

void IntervalRegisters::Clear() {
  std::fill(spread_at_.begin(), spread_at_.end(), -1);
  std::fill(unknown_.begin(), unknown_.end(), 0u);
  used_ = 0;
}

void IntervalRegisters::SetRange(Operand at, uint32_t low, uint32_t high, uint8_t depends) {
  if (used_ == spreads_.size()) spreads_.emplace_back();
  Spread& spread = spreads_[used_];
  spread.bytes = 4;
  spread.depends = depends;
  spread.low.fill(low);
  spread.high.fill(high);
  spread_at_[static_cast<uint32_t>(at) / kGranule] = static_cast<int32_t>(used_++);
}

uint32_t IntervalRegisters::KnownOf(Operand predicate) const {
  return IsPredicate(predicate) ? ~unknown_[static_cast<uint32_t>(predicate) / 4] : kAllLanes;
}

bool IntervalRegisters::Agrees(Operand predicate, uint32_t mask) const {
  return (mask & ~KnownOf(predicate)) == 0;
}

uint8_t IntervalRegisters::DependsOn(Operand at) const {
  if (IsPredicate(at)) return unknown_depends_[static_cast<uint32_t>(at) / 4];
  const int32_t spread = SpreadOf(at);
  return spread < 0 ? uint8_t{0} : spreads_[static_cast<size_t>(spread)].depends;
}

bool IntervalRegisters::IsKnown(Operand at) const {
  if (at < 0 || at == kNoOperand) return true;
  return IsPredicate(at) ? unknown_[static_cast<uint32_t>(at) / 4] == 0 : SpreadOf(at) < 0;
}

uint8_t IntervalRegisters::Dependences(const Instruction& in) const {
  uint8_t depends = 0;
  for (const Operand at : {in.a, in.b, in.c, in.e, in.predicate}) {
    if (!IsKnown(at)) depends |= DependsOn(at);
  }
  return depends;
}

IntervalRegisters::Range IntervalRegisters::Read(const Warp& warp, Operand at, Type type, int lane) const {
  Range value;
  const auto l = static_cast<size_t>(lane);
  const int32_t index = SpreadOf(at);
  const bool wide = TypeBytes(type) == 8;
  if (index >= 0) {
    const Spread& spread = spreads_[static_cast<size_t>(index)];
    value = {spread.low[l], spread.high[l]};
    if (spread.bytes != TypeBytes(type)) value = {0, Wide{1} << 64};  // a part of it: anything
  } else if (wide) {
    value.low = value.high = SourceAs<int64_t>(warp, at)[lane];
  } else {
    value.low = value.high = SourceAs<uint32_t>(warp, at)[lane];
  }
  return Within(value, type);
}

void IntervalRegisters::Write(Warp& warp, Operand at, uint32_t bytes, uint32_t mask, uint8_t depends,
                              const std::array<Range, kLanes>& values) {
  const Type stored = bytes == 8 ? Type::kS64 : Type::kU32;
  const int32_t before = SpreadOf(at);
  if (used_ == spreads_.size()) spreads_.emplace_back();
  Spread next;
  next.bytes = bytes;
  next.depends = depends;
  const bool keeps = before >= 0 && spreads_[static_cast<size_t>(before)].bytes == bytes;
  if (before >= 0 && mask != warp.alive) next.depends |= spreads_[static_cast<size_t>(before)].depends;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto l = static_cast<size_t>(lane);
    if (((mask >> lane) & 1u) != 0) {
      const Range value = Within(values[l], stored);
      next.low[l] = static_cast<int64_t>(value.low);
      next.high[l] = static_cast<int64_t>(value.high);
    } else if (keeps) {
      next.low[l] = spreads_[static_cast<size_t>(before)].low[l];
      next.high[l] = spreads_[static_cast<size_t>(before)].high[l];
    } else if (before >= 0) {  // what it held was not known, or of another width: anything
      next.low[l] = bytes == 8 ? INT64_MIN : 0;
      next.high[l] = bytes == 8 ? INT64_MAX : UINT32_MAX;
    } else {
      next.low[l] = next.high[l] = bytes == 8 ? SourceAs<int64_t>(warp, at)[lane] : SourceAs<uint32_t>(warp, at)[lane];
    }
  }
  const size_t place = before >= 0 ? static_cast<size_t>(before) : used_++;
  spreads_[place] = next;
  spread_at_[static_cast<uint32_t>(at) / kGranule] = static_cast<int32_t>(place);
}

// An operation that is not known here: its result may be anything.
void IntervalRegisters::WriteAnything(Operand at, uint32_t mask, uint8_t depends) {
  if (at < 0 || at == kNoOperand) return;
  if (IsPredicate(at)) {
    unknown_[static_cast<uint32_t>(at) / 4] |= mask;
    unknown_depends_[static_cast<uint32_t>(at) / 4] |= depends;
    return;
  }
  if (used_ == spreads_.size()) spreads_.emplace_back();
  const int32_t before = SpreadOf(at);
  const size_t place = before >= 0 ? static_cast<size_t>(before) : used_++;
  Spread& spread = spreads_[place];
  spread.bytes = 0;  // no type reads it
  spread.depends = depends;
  spread_at_[static_cast<uint32_t>(at) / kGranule] = static_cast<int32_t>(place);
}

// An instruction has run on what all blocks agree on: so they do on its results.
void IntervalRegisters::AfterKnown(Warp& warp, const Instruction& in, uint32_t mask) {
  for (const Operand at : {in.d, in.e}) {
    if (at < 0 || at == kNoOperand) continue;
    if (IsPredicate(at)) {
      unknown_[static_cast<uint32_t>(at) / 4] &= ~mask;
      continue;
    }
    if (at != in.d) continue;  // a source
    const int32_t index = SpreadOf(at);
    if (index < 0) continue;
    Spread& spread = spreads_[static_cast<size_t>(index)];
    if (mask == warp.alive) {
      spread_at_[static_cast<uint32_t>(at) / kGranule] = -1;
    } else {  // some lanes hold what they held
      for (uint32_t m = mask; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        const auto l = static_cast<size_t>(lane);
        if (spread.bytes != 0)
          spread.low[l] = spread.high[l] =
              spread.bytes == 8 ? SourceAs<int64_t>(warp, at)[lane] : SourceAs<uint32_t>(warp, at)[lane];
      }
    }
  }
}

void IntervalRegisters::Compare(Warp& warp, const Instruction& in, uint32_t mask, uint8_t depends) {
  const Meaning& meaning = Meanings().at(in.run);
  uint32_t yes = 0, known = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const int holds =
        Holds(meaning.relation, Read(warp, in.a, meaning.type, lane), Read(warp, in.b, meaning.type, lane));
    if (holds >= 0) known |= 1u << lane;
    if (holds > 0) yes |= 1u << lane;
  }
  uint32_t no = known & ~yes;
  uint32_t p = yes, q = no, p_known = known, q_known = known;
  if (in.size != 0) {
    const uint32_t c = PredicateOf(warp, in.c) ^ Flip(in), c_known = KnownOf(in.c);
    const auto join = [&](uint32_t value, uint32_t* result, uint32_t* result_known) {
      *result = in.size == 1 ? value & c : in.size == 2 ? value | c : value ^ c;
      *result_known = known & c_known;
      if (in.size == 1) *result_known |= (known & ~value) | (c_known & ~c);
      if (in.size == 2) *result_known |= (known & value) | (c_known & c);
      if (in.size == 1) *result &= ~((known & ~value) | (c_known & ~c));
      if (in.size == 2) *result |= (known & value) | (c_known & c);
    };
    join(yes, &p, &p_known);
    join(no, &q, &q_known);
  }
  const auto set = [&](Operand at, uint32_t value, uint32_t value_known) {
    if (at == kNoOperand) return;
    SetPredicate(warp, at, mask & value_known, value);
    uint32_t& unknown = unknown_[static_cast<uint32_t>(at) / 4];
    unknown = (unknown & ~mask) | (mask & ~value_known);
    unknown_depends_[static_cast<uint32_t>(at) / 4] |= depends;
  };
  set(in.d, p, p_known);
  set(in.e, q, q_known);
}

void IntervalRegisters::PredicateLogic(Warp& warp, const Instruction& in, uint32_t mask, uint8_t depends) {
  const Logic logic = Meanings().at(in.run).logic;
  const bool two = logic != Logic::kMove && logic != Logic::kNot;
  const uint32_t a = PredicateOf(warp, in.a), a_known = KnownOf(in.a);
  const uint32_t b = two ? PredicateOf(warp, in.b) : 0, b_known = two ? KnownOf(in.b) : kAllLanes;
  uint32_t known = a_known & b_known, value = a;
  if (logic == Logic::kNot) value = ~a;
  if (logic == Logic::kXor) value = a ^ b;
  if (logic == Logic::kAnd) {
    const uint32_t no = (a_known & ~a) | (b_known & ~b);
    value = a & b & ~no;
    known |= no;
  }
  if (logic == Logic::kOr) {
    const uint32_t yes = (a_known & a) | (b_known & b);
    value = yes;
    known |= yes;
  }
  SetPredicate(warp, in.d, mask & known, value);
  uint32_t& unknown = unknown_[static_cast<uint32_t>(in.d) / 4];
  unknown = (unknown & ~mask) | (mask & ~known);
  unknown_depends_[static_cast<uint32_t>(in.d) / 4] |= depends;
}

void IntervalRegisters::Execute(Warp& warp, const Instruction& in, uint32_t mask) {
  if (mask == 0) return;
  // A second destination that is no source may be unknown before.
  const bool e_is_source = in.e >= 0 && in.e != kNoOperand && !IsPredicate(in.e);
  if (IsKnown(in.a) && IsKnown(in.b) && IsKnown(in.c) && (!e_is_source || IsKnown(in.e))) {
    in.run(warp, in, mask);
    return AfterKnown(warp, in, mask);
  }
  const uint8_t depends = Dependences(in);
  const auto found = Meanings().find(in.run);
  if (found == Meanings().end()) {
    WriteAnything(in.d, mask, depends);
    if (IsPredicate(in.e)) WriteAnything(in.e, mask, depends);
    return;
  }
  const Meaning& meaning = found->second;
  if (meaning.operation == Operation::kCompare) return Compare(warp, in, mask, depends);
  if (meaning.operation == Operation::kPredicate) return PredicateLogic(warp, in, mask, depends);
  if (in.d < 0 || in.d == kNoOperand) return;
  std::array<Range, kLanes> values{};
  const uint32_t p = meaning.operation == Operation::kSelect ? PredicateOf(warp, in.c) ^ Flip(in) : 0;
  const uint32_t p_known = meaning.operation == Operation::kSelect ? KnownOf(in.c) : 0;
  const bool shifts = meaning.operation == Operation::kShl || meaning.operation == Operation::kShr;
  const bool adds = meaning.operation == Operation::kMadLo || meaning.operation == Operation::kMadWide;
  const bool unary = meaning.operation == Operation::kCopy || meaning.operation == Operation::kConvert ||
                     meaning.operation == Operation::kNeg || meaning.operation == Operation::kNot;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const Range a = Read(warp, in.a, meaning.type, lane);
    const Range b = unary ? Range{} : Read(warp, in.b, shifts ? Type::kU32 : meaning.type, lane);
    Range& value = values[static_cast<size_t>(lane)];
    if (meaning.operation == Operation::kSelect) {
      const bool known = ((p_known >> lane) & 1u) != 0, first = ((p >> lane) & 1u) != 0;
      value = !known ? Range{std::min(a.low, b.low), std::max(a.high, b.high)} : first ? a : b;
      continue;
    }
    bool any = false;
    value = Result(meaning.operation, meaning.type, a, b, adds ? Read(warp, in.c, meaning.to, lane) : Range{}, &any);
    if (any) value = {0, Wide{1} << 64};
  }
  Write(warp, in.d, TypeBytes(meaning.to), mask, depends, values);
}

}  // namespace kgrpo::simt
