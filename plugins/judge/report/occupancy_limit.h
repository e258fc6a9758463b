// Names the resource that limits a kernel's occupancy, from the metrics of how many blocks each has room for. Used by
// remarks.cc.
#pragma once

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

}  // namespace kgrpo::evaluator
