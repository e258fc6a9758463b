// Small measurements of a GPU's parts, each of one thing. Used by calibrate; compiled by nvcc.
#ifndef KGRPO_TOOLS_CALIBRATE_MICROBENCHMARKS_H
#define KGRPO_TOOLS_CALIBRATE_MICROBENCHMARKS_H

#include <functional>
#include <string>

namespace kgrpo::bench {

struct Micro {
  std::string name;  // "dram_read", "shared_conflict", ...
  double at = 0;     // what was varied: megabytes, ways, warps, blocks
  double value = 0;
  std::string unit;  // of value: "GB/s", "cycles", "us", "per cycle", "per cycle and SM"
};

// Runs them all on the current device, some seconds, and gives each to `report` once it is measured. Throws Error
// for a CUDA error. Cycles are those of the multiprocessors' clock, which is measured beside each.
void RunMicrobenchmarks(const std::function<void(const Micro&)>& report);

// "NVIDIA H100 80GB HBM3"
std::string CurrentDeviceName();

}  // namespace kgrpo::bench

#endif
