// Agreement of predicted times with measured ones. Used by calibrate and model_accuracy.
#ifndef KGRPO_TOOLS_CALIBRATE_ACCURACY_H
#define KGRPO_TOOLS_CALIBRATE_ACCURACY_H

#include <cstddef>
#include <string>
#include <vector>

namespace kgrpo::bench {

struct Timed {
  std::string problem;
  double measured = 0, predicted = 0;  // seconds
};

struct Accuracy {
  size_t kernels = 0;
  size_t pairs = 0, pairs_correct = 0;                 // of kernels of the same problem
  size_t apart = 0, apart_correct = 0;                 // of those, measured more than 10% apart
  double tau = 0;                                      // Kendall's tau-b within a problem, the mean over problems
  double tau_beyond_noise = 0;                         // the same over pairs measured more than 3% apart
  double median_factor = 0, percentile_90_factor = 0;  // of max(predicted / measured, measured / predicted)
  double bias = 0;                                     // geometric mean of predicted / measured

  double PairsCorrect() const {
    return pairs == 0 ? 1 : static_cast<double>(pairs_correct) / static_cast<double>(pairs);
  }
  double ApartCorrect() const {
    return apart == 0 ? 1 : static_cast<double>(apart_correct) / static_cast<double>(apart);
  }
};

Accuracy Compare(const std::vector<Timed>& kernels);

// A table: a line a problem, then all together.
std::string Table(const std::vector<Timed>& kernels);
std::string Line(const std::string& name, const Accuracy& accuracy);
std::string Heading();

}  // namespace kgrpo::bench

#endif
