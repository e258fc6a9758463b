#include "simt/schedule/interval_ops.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "simt/lower/integer_meaning.h"

namespace kgrpo::simt {
namespace {

uint32_t Flip(const Instruction& in) { return (in.flags & kFlagNegateC) != 0 ? kAllLanes : 0u; }

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

bool IntervalRegisters::Agrees(Operand predicate, uint32_t mask) const { return (mask & ~KnownOf(predicate)) == 0; }

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

Interval IntervalRegisters::Read(const Warp& warp, Operand at, Type type, int lane) const {
  Interval value;
  const auto l = static_cast<size_t>(lane);
  const int32_t index = SpreadOf(at);
  const bool wide = TypeBytes(type) == 8;
  if (index >= 0) {
    const Spread& spread = spreads_[static_cast<size_t>(index)];
    value = {spread.low[l], spread.high[l]};
    if (spread.bytes != TypeBytes(type)) value = {0, Wide{1} << 64};  // another width: any value
  } else if (wide) {
    value.low = value.high = SourceAs<int64_t>(warp, at)[lane];
  } else {
    value.low = value.high = SourceAs<uint32_t>(warp, at)[lane];
  }
  return Within(value, type);
}

void IntervalRegisters::Write(Warp& warp, Operand at, uint32_t bytes, uint32_t mask, uint8_t depends,
                              const std::array<Interval, kLanes>& values) {
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
      const Interval value = Within(values[l], stored);
      next.low[l] = static_cast<int64_t>(value.low);
      next.high[l] = static_cast<int64_t>(value.high);
    } else if (keeps) {
      next.low[l] = spreads_[static_cast<size_t>(before)].low[l];
      next.high[l] = spreads_[static_cast<size_t>(before)].high[l];
    } else if (before >= 0) {  // the old value is unknown or of another width: any value
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

// Writes the result of an unknown operation: any value.
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
  spread.bytes = 0;  // read by no type, so any value
  spread.depends = depends;
  spread_at_[static_cast<uint32_t>(at) / kGranule] = static_cast<int32_t>(place);
}

// Updates the results of an instruction that ran on known values: all blocks agree on the results too.
void IntervalRegisters::AfterKnown(Warp& warp, const Instruction& in, uint32_t mask) {
  for (const Operand at : {in.d, in.e}) {
    if (at < 0 || at == kNoOperand) continue;
    if (IsPredicate(at)) {
      unknown_[static_cast<uint32_t>(at) / 4] &= ~mask;
      continue;
    }
    if (at != in.d) continue;  // e is a source
    const int32_t index = SpreadOf(at);
    if (index < 0) continue;
    Spread& spread = spreads_[static_cast<size_t>(index)];
    if (mask == warp.alive) {
      spread_at_[static_cast<uint32_t>(at) / kGranule] = -1;
    } else {  // the other lanes keep their values
      for (const int lane : EachBit(mask)) {
        const auto l = static_cast<size_t>(lane);
        if (spread.bytes != 0)
          spread.low[l] = spread.high[l] =
              spread.bytes == 8 ? SourceAs<int64_t>(warp, at)[lane] : SourceAs<uint32_t>(warp, at)[lane];
      }
    }
  }
}

void IntervalRegisters::Compare(Warp& warp, const Instruction& in, uint32_t mask, uint8_t depends) {
  const IntegerMeaning& meaning = *MeaningOf(in.run);
  uint32_t yes = 0, known = 0;
  for (const int lane : EachBit(mask)) {
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
  const Logic logic = MeaningOf(in.run)->logic;
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
  // A second destination that is not also a source may hold anything.
  const bool e_is_source = in.e >= 0 && in.e != kNoOperand && !IsPredicate(in.e);
  if (IsKnown(in.a) && IsKnown(in.b) && IsKnown(in.c) && (!e_is_source || IsKnown(in.e))) {
    in.run(warp, in, mask);
    return AfterKnown(warp, in, mask);
  }
  const uint8_t depends = Dependences(in);
  const IntegerMeaning* found = MeaningOf(in.run);
  if (found == nullptr) {
    WriteAnything(in.d, mask, depends);
    if (IsPredicate(in.e)) WriteAnything(in.e, mask, depends);
    return;
  }
  const IntegerMeaning& meaning = *found;
  if (meaning.operation == Operation::kCompare) return Compare(warp, in, mask, depends);
  if (meaning.operation == Operation::kPredicate) return PredicateLogic(warp, in, mask, depends);
  if (in.d < 0 || in.d == kNoOperand) return;
  std::array<Interval, kLanes> values{};
  const uint32_t p = meaning.operation == Operation::kSelect ? PredicateOf(warp, in.c) ^ Flip(in) : 0;
  const uint32_t p_known = meaning.operation == Operation::kSelect ? KnownOf(in.c) : 0;
  const bool shifts = meaning.operation == Operation::kShl || meaning.operation == Operation::kShr;
  const bool adds = meaning.operation == Operation::kMadLo || meaning.operation == Operation::kMadWide;
  const bool unary = meaning.operation == Operation::kCopy || meaning.operation == Operation::kConvert ||
                     meaning.operation == Operation::kNeg || meaning.operation == Operation::kNot;
  for (const int lane : EachBit(mask)) {
    const Interval a = Read(warp, in.a, meaning.type, lane);
    const Interval b = unary ? Interval{} : Read(warp, in.b, shifts ? Type::kU32 : meaning.type, lane);
    Interval& value = values[static_cast<size_t>(lane)];
    if (meaning.operation == Operation::kSelect) {
      const bool known = ((p_known >> lane) & 1u) != 0, first = ((p >> lane) & 1u) != 0;
      value = !known ? Interval{std::min(a.low, b.low), std::max(a.high, b.high)} : first ? a : b;
      continue;
    }
    bool any = false;
    value = Apply(meaning.operation, meaning.type, a, b, adds ? Read(warp, in.c, meaning.to, lane) : Interval{}, &any);
    if (any) value = {0, Wide{1} << 64};
  }
  Write(warp, in.d, TypeBytes(meaning.to), mask, depends, values);
}

}  // namespace kgrpo::simt
