// What an evaluator measured of each line of the source, put together from its metrics: "line/12 dram" (of the time,
// and what most of it is for), "line_sectors/12" and so on. Used by metrics.cc, by the table that
// `kgrpo-host eval` prints and by its report.
#ifndef KGRPO_SUPPORT_LINE_FACTS_H
#define KGRPO_SUPPORT_LINE_FACTS_H

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// A metric's name and value, as an evaluator pushed it.
using NamedNumber = std::pair<std::string, double>;

struct LineFacts {
  unsigned line = 0;                       // from 1
  double share = 0;                        // of the time
  std::string bound;                       // what most of that is for: "dram"; "" where nobody says
  std::optional<double> sectors;           // a global load or store request
  std::optional<double> sectors_used;      // of their bytes
  std::optional<double> shared_cycles;     // a shared memory access
  std::optional<double> shared_conflicts;  // of those cycles, by bank conflicts

  // "97.7% of the time, mostly l2; 10 sectors a request, 40% of their bytes used"
  std::string Text() const;
  // Of that, what is behind the time.
  std::string AccessText() const;
};

// The line that takes most first.
std::vector<LineFacts> LinesOf(const std::vector<NamedNumber>& metrics);

}  // namespace kgrpo
#endif
