// An evaluation's remarks, from its metrics: what limits the occupancy, and which lines of the source take the time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kgrpo/support/evaluation.h>

namespace kgrpo::evaluator {

// The number of blocks of a launch that one resource of a multiprocessor has room for.
struct OccupancyRoom {
  std::string resource;  // "registers", "shared memory", "block size", "number of blocks"
  double blocks = 0;
  bool least = false;  // the limit, or one of several
};

// In the order of the metrics; empty where none says.
std::vector<OccupancyRoom> OccupancyRooms(const std::vector<Metric>& metrics);

// "registers (room for 5 blocks; block size for 8)", or "nothing"; adds the grid where it is too small for the device.
// "" where nothing is known.
std::string OccupancyLimit(const std::vector<Metric>& metrics);

// Measurements of a line of the source: "line/12 dram" (the share of the time, and its largest term),
// "line_sectors/12"...
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

// The lines that take most of the time first.
std::vector<Remark> RemarksOf(const std::vector<Metric>& metrics);

}  // namespace kgrpo::evaluator
