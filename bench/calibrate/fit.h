// Fits a device's parameters to measured kernels. Used by calibrate.
#ifndef KGRPO_TOOLS_CALIBRATE_FIT_H
#define KGRPO_TOOLS_CALIBRATE_FIT_H

#include <functional>
#include <string>
#include <vector>

#include "calibrate/accuracy.h"
#include "calibrate/counted_kernel.h"

namespace kgrpo::bench {

// A fitted parameter. `deviation` is the standard deviation of the logarithm of its value around the start value, by
// how well it is known. Data sheets' figures are not fitted.
struct FitParameter {
  std::string name;  // of the field in the device's file
  double simt::Device::*field = nullptr;
  double simt::Latencies::*latency = nullptr;
  double deviation = 0;
  double& Of(simt::Device& device) const { return field != nullptr ? device.*field : device.latencies.*latency; }
};
const std::vector<FitParameter>& FitParameters();

struct Fitted {
  simt::Device device;
  double offset = 0;  // seconds that the measurement adds to each kernel
};

// `known` are the names of parameters that `start` has from measurements of their own: they may move a quarter as far.
Fitted Fit(const simt::Device& start, double offset, bool fit_offset, const std::vector<std::string>& known,
           const std::vector<const CountedKernel*>& kernels, int rounds);

std::vector<Timed> Predict(const Fitted& fitted, const std::vector<const CountedKernel*>& kernels);

// Each kernel predicted by a fit that saw nothing of its family (problem.yaml's `family`), in `folds` groups of
// families.
std::vector<Timed> CrossValidate(const simt::Device& start, double offset, bool fit_offset,
                                 const std::vector<std::string>& known, const std::vector<CountedKernel>& kernels,
                                 int folds, int rounds);

}  // namespace kgrpo::bench

#endif
