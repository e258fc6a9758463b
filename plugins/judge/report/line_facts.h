// An evaluator's measurements by line of the source, collected from its metrics: "line/12 dram" (the share of the time,
// and its largest term), "line_sectors/12" and so on. Used by remarks.cc and by the report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kgrpo/support/evaluation.h>

namespace kgrpo::evaluator {

struct LineFacts {
  unsigned line = 0;                       // from 1
  double share = 0;                        // of the time
  std::string bound;                       // the largest term of that time: "dram"; "" where it is not known
  std::optional<double> sectors;           // a global load or store request
  std::optional<double> sectors_used;      // of their bytes
  std::optional<double> shared_cycles;     // a shared memory access
  std::optional<double> shared_conflicts;  // of those cycles, by bank conflicts

  // "mostly l2; 10 sectors a request, 40% of their bytes used"
  std::string Text() const;
};

// The line that takes most first.
std::vector<LineFacts> LinesOf(const std::vector<Metric>& metrics);

}  // namespace kgrpo::evaluator
