// Kernels with the work counted in an interpreted call and, where known, the time on a GPU: the data that the time
// model is fitted to and tested on. Used by calibrate and model_accuracy.
#ifndef KGRPO_TOOLS_CALIBRATE_COUNTED_KERNEL_H
#define KGRPO_TOOLS_CALIBRATE_COUNTED_KERNEL_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "evaluator_sim/kernel_evaluator.h"
#include "simt/time/time_model.h"

namespace kgrpo::bench {

struct CountedKernel {
  std::string problem, schedule;
  std::string family;                            // of the problem, see problem.yaml
  double measured = 0;                           // seconds; 0 where it was not measured
  double copy_seconds = 0;                       // modelled, of copies and memsets of the call
  std::vector<simt::Counts> counts;              // by launch
  std::vector<simt::KernelResources> resources;  // likewise

  // Modelled seconds of the call.
  double Predict(const simt::Device& device) const;
};

// A line of a CSV of measured kernels, whose columns are problem, schedule, verdict, microseconds and maybe more.
struct MeasuredKernel {
  std::string problem, schedule;
  double microseconds = 0;
};

// True if such a file's verdict means a correct kernel: older files say "right" or "ok".
bool IsCorrectVerdict(const std::string& verdict);

// The kernels of such a file that were correct each time, with the median of their times. Throws Error "FILE:LINE:
// ...".
std::vector<MeasuredKernel> ReadMeasured(const std::string& path);

// Of each problem at most `count` kernels, spread evenly over its schedules in order; all where count is 0. The same
// every time.
std::vector<MeasuredKernel> Sample(const std::vector<MeasuredKernel>& all, size_t count);

// Writes a problem's kernel again from its schedule, compiles and interprets it at the timing size.
class KernelCounter {
 public:
  KernelCounter(const std::string& problems, const std::string& device, const std::string& cache_directory,
                size_t threads);

  // Returns the kernels that could be counted, in the order given; reports the others on stderr. Uses `threads`
  // threads.
  std::vector<CountedKernel> Count(const std::vector<MeasuredKernel>& kernels);

 private:
  const std::string problems_, cache_directory_;
  const size_t threads_;
  evaluator_sim::KernelEvaluator evaluator_;
};

// Counts kept in a file, a line of JSON a kernel, so that the model can be tried again within seconds. Load throws
// Error for lines of another version's.
void Save(const std::string& path, const std::vector<CountedKernel>& kernels);
std::vector<CountedKernel> Load(const std::string& path);

}  // namespace kgrpo::bench

#endif
