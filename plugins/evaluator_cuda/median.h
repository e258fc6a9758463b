// A median and its confidence interval. Used by the timer for the time of a call and to decide when to stop.
#pragma once

#include <vector>

namespace kgrpo::evaluator_cuda {

struct Median {
  double value = 0;
  // An interval that holds the population's median with a probability of at least 95%, for any distribution: order
  // statistics by the binomial distribution (Conover, Practical Nonparametric Statistics, section 3.2). With fewer than
  // six values there is no such interval, and these are the smallest and the largest value.
  double low = 0, high = 0;

  // Half the interval's width, relative to the median.
  double RelativeError() const { return value > 0 ? (high - low) / 2 / value : 1; }
};

// Of at least one value.
Median MedianOf(std::vector<double> values);

}  // namespace kgrpo::evaluator_cuda
