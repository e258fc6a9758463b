// Arithmetic on intervals of integers: between which numbers a result lies. Used by interval_ops.cc.
#ifndef KGRPO_INTERPRETER_SIMT_INTERVALS_H_
#define KGRPO_INTERPRETER_SIMT_INTERVALS_H_

#include "interpreter/simt/integer_meaning.h"

namespace kgrpo::simt {

__extension__ using Wide = __int128;

struct Interval {
  Wide low = 0, high = 0;
};

// The integers of a type that are the same bits as those in `value`, or all of it where these wrap around.
Interval Within(Interval value, Type type);

// The mathematical result of the operation on operands within these intervals; sets `*any` if that is not known.
Interval Apply(Operation operation, Type type, const Interval& a, const Interval& b, const Interval& c, bool* any);

// 1 if the relation holds for all values, 0 if for none, -1 if for some.
int Holds(Relation relation, const Interval& a, const Interval& b);

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_INTERVALS_H_
