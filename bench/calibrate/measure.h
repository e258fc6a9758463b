// Measurements on the GPU of this machine. Used by calibrate.
#ifndef KGRPO_TOOLS_CALIBRATE_MEASURE_H
#define KGRPO_TOOLS_CALIBRATE_MEASURE_H

#include <cstddef>
#include <string>

namespace kgrpo::bench {

// Writes microbenchmarks to a CSV file, under another name first, so that the file is complete if it exists.
void MeasureParts(const std::string& path);

struct KernelsToMeasure {
  std::string problems;  // a folder of problems
  std::string csv;       // problem,schedule,verdict,microseconds; lines are added
  size_t sample = 12;    // kernels of a problem
  size_t passes = 1;  // measurements of each kernel, each in another process, because the placement in memory differs
  size_t threads = 8;
  double minutes = 8;  // no measurement begins after that
};
void MeasureKernels(const KernelsToMeasure& wanted);

}  // namespace kgrpo::bench

#endif
