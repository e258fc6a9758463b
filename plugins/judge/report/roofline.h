// The data of a roofline picture: a kernel's rate over its operations for each byte moved, below the device's limits.
// Taken from an evaluator's metrics; drawn by roofline_picture.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kgrpo/support/evaluation.h>

namespace kgrpo::evaluator {

struct Roofline {
  struct Slope {
    std::string name;  // "DRAM, reached"
    double bytes_per_second = 0;
    bool below = false;   // its name goes below the line
    bool dashed = false;  // a data sheet's
  };
  struct Peak {
    std::string name;  // "fp32"
    double rate = 0;
    bool dashed = false;
  };
  enum class Mark { kKernel, kKernelOtherLevel, kReference };
  struct Point {
    std::string name;
    double intensity = 0, rate = 0;
    Mark mark = Mark::kKernel;
  };
  std::string work;            // "operations", "warp instructions"
  std::string rate_unit;       // "FLOP/s", "instructions/s"
  std::string intensity_unit;  // "FLOP/byte"
  std::vector<Slope> slopes;   // fastest first
  std::vector<Peak> peaks;     // fastest first
  std::vector<Point> points;
  double needed_intensity = 0;  // of a kernel that moves no more than the problem needs; 0: not shown
};

// Counts operations where the problem needs some (at least one for 100 bytes), else instructions where the evaluator
// counts them. Returns nothing where there are neither, or no figures of the device.
std::optional<Roofline> RooflineOf(const Evaluation& candidate, const Evaluation& baseline);

}  // namespace kgrpo::evaluator
