// An evaluation's remarks: what limits the occupancy, and which lines of the source take the time.
// Used by interface.cc.
#pragma once

#include <vector>

#include <kgrpo/support/evaluation.h>

namespace kgrpo::evaluator {

// The lines that take most of the time first.
std::vector<Remark> RemarksOf(const std::vector<Metric>& metrics);

}  // namespace kgrpo::evaluator
