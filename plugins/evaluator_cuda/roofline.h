// The time of a problem's needs at this device's measured rates: the roofline used for "x% of peak" in reports, and the
// least time, below which a kernel is implausible. Used by the evaluator.
#pragma once

#include <string>

#include "judge/problem/problem.h"  // Problem

namespace kgrpo::evaluator_cuda {

// The device's highest rates, measured by our own kernels.
struct Ceilings {
  double read_bytes_per_second = 0;
  double fp32_operations_per_second = 0;    // fused multiply-adds, two operations each, as are all of these
  double fp64_operations_per_second = 0;    // without tensor cores
  double tensor_operations_per_second = 0;  // mma.sync on float16, summed in float16 or float32, whichever is faster
};

struct Roofline {
  double bytes = 0, operations = 0;  // that the problem needs at the timing size
  double bandwidth = 0;              // bytes a second
  double rate = 0;                   // operations a second of the unit that the problem's dtypes call for
  std::string unit;                  // "fp32", "fp64" or "tensor core"
  double seconds = 0;                // at `bandwidth` and `rate`
  bool memory_binds = false;         // the traffic takes longer than the arithmetic
  // At the bandwidth and the rate of the fastest unit whose precision the tolerance allows, by any instruction. No
  // honest kernel is faster.
  double least_seconds = 0;
};

// `compute_capability` as in 90.
Roofline RooflineOf(const evaluator::Problem& problem, const Ceilings& ceilings, int compute_capability);

// "3.02e+03 GB/s of the traffic that is needed, 99% of what ...": which ceiling binds, and the shares of both.
std::string RooflineText(const Roofline& roofline, double seconds);

}  // namespace kgrpo::evaluator_cuda
