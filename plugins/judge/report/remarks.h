// An evaluation's remarks: what limits the occupancy, and which lines of the source take the time.
// Used by interface.cc.
#ifndef KGRPO_JUDGE_REPORT_REMARKS_H
#define KGRPO_JUDGE_REPORT_REMARKS_H

#include <vector>

#include <kgrpo/support/evaluation.h>

namespace kgrpo::evaluator {

// The lines that take most of the time first.
std::vector<Remark> RemarksOf(const std::vector<Metric>& metrics);

}  // namespace kgrpo::evaluator
#endif
