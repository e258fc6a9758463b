// Reads the output of Nsight Compute's command line program: the table of `ncu --csv`, and its errors. Used by the
// profiler.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kgrpo::evaluator_cuda {

// One launch that was profiled.
struct ProfiledKernel {
  std::string name;
  std::map<std::string, double> counts;  // by ncu's name of the metric; those that it could not count are missing
};

struct NcuReport {
  std::vector<ProfiledKernel> kernels;  // in the order of their launches

  // Reasons why kernels or counters are missing; each is false or empty where it does not apply.
  bool not_permitted = false;                // to read performance counters (ERR_NVGPUCTRPERM)
  std::vector<std::string> unknown_metrics;  // that this ncu or this device does not know, as ncu quotes them
  std::string complaint;  // the first other ==ERROR==, or the last ==WARNING== where nothing was profiled
};

// `output`: standard output and error of ncu, in whatever order they came. Understands both forms of the table, with a
// line for each metric (--page details) and with a column for each (--page raw, whose second line has the units);
// values are taken as they stand, so ask for --print-units base.
NcuReport ParseNcuOutput(const std::string& output);

}  // namespace kgrpo::evaluator_cuda
