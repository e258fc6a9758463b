// The integer instructions as generic functions, for evaluation over other types than the values of one block.
// Used by the census of blocks (interval_ops.h).
#pragma once

#include <cstdint>

#include "simt/state/program.h"

namespace kgrpo::simt {

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

struct IntegerMeaning {
  Operation operation = Operation::kCopy;
  Type type = Type::kU32;  // of the sources
  Type to = Type::kU32;    // of the result
  Relation relation = Relation::kEq;
  Logic logic = Logic::kMove;
};

// Null where the handler is none of these.
const IntegerMeaning* MeaningOf(Handler handler);

}  // namespace kgrpo::simt
