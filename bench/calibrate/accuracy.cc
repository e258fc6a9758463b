#include "calibrate/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace kgrpo::bench {
namespace {

constexpr double kApart = 1.1;
// Nine of ten pairs of kernels with the same machine code were measured less than this apart (docs/time_model.md).
constexpr double kNoise = 1.03;
// Predictions closer than this count as equal: such a pair is neither correct nor wrong and counts half.
constexpr double kSame = 1e-9;

// Kendall's tau-b of one problem after the other, and their mean.
class Tau {
 public:
  // A pair's logarithms of ratios.
  void Add(double measured, double predicted, bool same_predicted) {
    ++pairs_;
    tied_measured_ += measured == 0 ? 1 : 0;
    tied_predicted_ += same_predicted ? 1 : 0;
    if (measured == 0 || same_predicted) return;
    difference_ += (measured > 0) == (predicted > 0) ? 1 : -1;
  }
  void FinishProblem() {
    const double scale = std::sqrt((pairs_ - tied_measured_) * (pairs_ - tied_predicted_));
    if (scale > 0) {
      sum_ += difference_ / scale;
      ++problems_;
    }
    pairs_ = tied_measured_ = tied_predicted_ = difference_ = 0;
  }
  double Mean() const { return problems_ == 0 ? 1 : sum_ / problems_; }

 private:
  double pairs_ = 0, tied_measured_ = 0, tied_predicted_ = 0, difference_ = 0;
  double sum_ = 0, problems_ = 0;
};

}  // namespace

Accuracy Compare(const std::vector<Timed>& kernels) {
  Accuracy result;
  result.kernels = kernels.size();
  if (kernels.empty()) return result;
  std::map<std::string, std::vector<const Timed*>> by_problem;
  std::vector<double> factors;
  double log_sum = 0;
  for (const Timed& kernel : kernels) {
    by_problem[kernel.problem].push_back(&kernel);
    const double log_ratio = std::log(kernel.predicted / kernel.measured);
    log_sum += log_ratio;
    factors.push_back(std::exp(std::abs(log_ratio)));
  }
  double halves = 0, halves_apart = 0;
  Tau all, beyond_noise;
  for (const auto& [problem, group] : by_problem) {
    for (size_t i = 0; i < group.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const double m = std::log(group[i]->measured / group[j]->measured),
                     p = std::log(group[i]->predicted / group[j]->predicted);
        const bool same_measured = m == 0, same_predicted = std::abs(p)<kSame, apart = std::abs(m)> std::log(kApart);
        all.Add(m, p, same_predicted);
        if (std::abs(m) > std::log(kNoise)) beyond_noise.Add(m, p, same_predicted);
        if (same_measured) continue;
        ++result.pairs;
        result.apart += apart ? 1 : 0;
        if (same_predicted) {
          halves += 0.5;
          halves_apart += apart ? 0.5 : 0;
        } else if ((m > 0) == (p > 0)) {
          ++result.pairs_correct;
          result.apart_correct += apart ? 1 : 0;
        }
      }
    }
    all.FinishProblem();
    beyond_noise.FinishProblem();
  }
  result.pairs_correct += static_cast<size_t>(halves);
  result.apart_correct += static_cast<size_t>(halves_apart);
  result.tau = all.Mean();
  result.tau_beyond_noise = beyond_noise.Mean();
  std::sort(factors.begin(), factors.end());
  result.median_factor = factors[factors.size() / 2];
  result.percentile_90_factor = factors[factors.size() * 9 / 10];
  result.bias = std::exp(log_sum / static_cast<double>(kernels.size()));
  return result;
}

std::string Heading() {
  char text[200];
  std::snprintf(text, sizeof text, "%-26s %7s %7s %7s %7s %7s %7s %7s %7s\n", "", "kernels", "pairs", ">10%", "tau",
                "tau>3%", "median", "90%", "bias");
  return text;
}

std::string Line(const std::string& name, const Accuracy& a) {
  char text[200];
  std::snprintf(text, sizeof text, "%-26s %7zu %6.1f%% %6.1f%% %7.3f %7.3f %7.2f %7.2f %7.2f\n", name.c_str(),
                a.kernels, 100 * a.PairsCorrect(), 100 * a.ApartCorrect(), a.tau, a.tau_beyond_noise, a.median_factor,
                a.percentile_90_factor, a.bias);
  return text;
}

std::string Table(const std::vector<Timed>& kernels) {
  std::map<std::string, std::vector<Timed>> by_problem;
  for (const Timed& kernel : kernels) by_problem[kernel.problem].push_back(kernel);
  std::string text = Heading();
  for (const auto& [problem, group] : by_problem) text += Line(problem, Compare(group));
  return text + Line("all", Compare(kernels));
}

}  // namespace kgrpo::bench
