#include "calibrate/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace kgrpo::bench {
namespace {

constexpr double kApart = 1.1;
// Predictions nearer than this say "the same", which is neither right nor wrong of a pair: half a point.
constexpr double kSame = 1e-9;

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
  double tau_sum = 0, halves = 0, halves_apart = 0;
  size_t with_tau = 0;
  for (const auto& [problem, group] : by_problem) {
    double concordant = 0, discordant = 0, tied_measured = 0, tied_predicted = 0, count = 0;
    for (size_t i = 0; i < group.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const double m = std::log(group[i]->measured / group[j]->measured),
                     p = std::log(group[i]->predicted / group[j]->predicted);
        const bool same_measured = m == 0, same_predicted = std::abs(p)<kSame, apart = std::abs(m)> std::log(kApart);
        ++count;
        tied_measured += same_measured ? 1 : 0;
        tied_predicted += same_predicted ? 1 : 0;
        if (same_measured) continue;
        ++result.pairs;
        result.apart += apart ? 1 : 0;
        if (same_predicted) {
          halves += 0.5;
          halves_apart += apart ? 0.5 : 0;
        } else if ((m > 0) == (p > 0)) {
          ++concordant;
          ++result.pairs_right;
          result.apart_right += apart ? 1 : 0;
        } else {
          ++discordant;
        }
      }
    }
    const double scale = std::sqrt((count - tied_measured) * (count - tied_predicted));
    if (scale > 0) {
      tau_sum += (concordant - discordant) / scale;
      ++with_tau;
    }
  }
  result.pairs_right += static_cast<size_t>(halves);
  result.apart_right += static_cast<size_t>(halves_apart);
  result.tau = with_tau == 0 ? 1 : tau_sum / static_cast<double>(with_tau);
  std::sort(factors.begin(), factors.end());
  result.median_factor = factors[factors.size() / 2];
  result.percentile_90_factor = factors[factors.size() * 9 / 10];
  result.bias = std::exp(log_sum / static_cast<double>(kernels.size()));
  return result;
}

std::string Heading() {
  char text[200];
  std::snprintf(text, sizeof text, "%-26s %7s %7s %7s %7s %7s %7s %7s\n", "", "kernels", "pairs", ">10%", "tau",
                "median", "90%", "bias");
  return text;
}

std::string Line(const std::string& name, const Accuracy& a) {
  char text[200];
  std::snprintf(text, sizeof text, "%-26s %7zu %6.1f%% %6.1f%% %7.3f %7.2f %7.2f %7.2f\n", name.c_str(), a.kernels,
                100 * a.PairsRight(), 100 * a.ApartRight(), a.tau, a.median_factor, a.percentile_90_factor, a.bias);
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
