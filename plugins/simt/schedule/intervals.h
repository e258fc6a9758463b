// Arithmetic on intervals of integers: bounds of results. Used by interval_ops.cc.
#pragma once

#include "simt/lower/integer_meaning.h"

namespace kgrpo::simt {

__extension__ using Wide = __int128;

struct Interval {
  Wide low = 0, high = 0;
};

// Returns the values reinterpreted in the type, or the type's whole range if they wrap around.
Interval Within(Interval value, Type type);

// Returns bounds of the mathematical result for operands within these intervals; sets `*any` if none are known.
Interval Apply(Operation operation, Type type, const Interval& a, const Interval& b, const Interval& c, bool* any);

// 1 if the relation holds for all values, 0 if for none, -1 if for some.
int Holds(Relation relation, const Interval& a, const Interval& b);

}  // namespace kgrpo::simt
