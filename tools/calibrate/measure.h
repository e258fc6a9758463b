// Measurements on the GPU of this machine. Used by calibrate.
#ifndef KGRPO_TOOLS_CALIBRATE_MEASURE_H
#define KGRPO_TOOLS_CALIBRATE_MEASURE_H

#include <cstddef>
#include <string>

namespace kgrpo::bench {

// Microbenchmarks to a CSV file. Written beside it first, so that the file is whole if it is there.
void MeasureParts(const std::string& path);

struct KernelsToMeasure {
  std::string problems;  // a folder of problems
  std::string csv;       // problem,schedule,verdict,microseconds; lines are added
  size_t sample = 12;    // kernels of a problem
  size_t passes = 1;     // measurements of each, in as many processes: where memory comes to lie differs
  size_t threads = 8;
  double minutes = 8;  // none is begun after that
};
void MeasureKernels(const KernelsToMeasure& wanted);

}  // namespace kgrpo::bench

#endif
