// Coordinate descent over logarithms: the objective has kinks (which term binds), few dozen parameters and takes
// milliseconds.
#include "calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace kgrpo::bench {
namespace {

constexpr double kSmooth = 0.04;    // of a logarithm: errors below it hardly count
constexpr double kOrderWeight = 1;  // weight of errors that kernels of one problem do not share, relative to all errors
constexpr double kPriorWeight = 0.004;  // weight of one standard deviation from the start, relative to a mean error
constexpr double kKnown = 0.25;         // factor on the deviation of a measured parameter
constexpr double kFirstStep = 0.3, kLeastStep = 0.01;  // of a logarithm
constexpr double kOffsetStep = 1e-6;

double Smooth(double x) { return std::sqrt(x * x + kSmooth * kSmooth) - kSmooth; }

// Every problem weighs the same.
double Loss(const Fitted& fitted, const std::vector<const CountedKernel*>& kernels) {
  std::map<std::string, std::vector<double>> errors;
  for (const CountedKernel* kernel : kernels) {
    const double measured = std::max(kernel->measured - fitted.offset, 0.2 * kernel->measured);
    errors[kernel->problem].push_back(std::log(kernel->Predict(fitted.device) / measured));
  }
  double loss = 0;
  for (auto& [problem, all] : errors) {
    std::vector<double> sorted = all;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    const double middle = sorted[sorted.size() / 2];
    double sum = 0;
    for (const double error : all) sum += Smooth(error) + kOrderWeight * Smooth(error - middle);
    loss += sum / static_cast<double>(all.size());
  }
  return loss / static_cast<double>(errors.size());
}

}  // namespace

const std::vector<FitParameter>& FitParameters() {
  using D = simt::Device;
  using L = simt::Latencies;
  static const std::vector<FitParameter> parameters = {
      {"dram_efficiency", &D::dram_efficiency, nullptr, 0.1},
      {"l2_sectors_per_cycle", &D::l2_sectors_per_cycle, nullptr, 0.3},
      {"l2_partial_store", &D::l2_partial_store, nullptr, 0.4},
      {"l2_keeps", &D::l2_keeps, nullptr, 0.3},
      {"l1_effective", &D::l1_effective, nullptr, 0.3},
      {"l1_lines_per_cycle", &D::l1_lines_per_cycle, nullptr, 0.3},
      {"shared_conflict_cycles", &D::shared_conflict_cycles, nullptr, 0.2},
      {"l2_atomics_per_cycle", &D::l2_atomics_per_cycle, nullptr, 0.4},
      {"atomic_turn_cycles", &D::atomic_turn_cycles, nullptr, 0.1},
      {"shared_atomic_cycles", &D::shared_atomic_cycles, nullptr, 0.4},
      {"issue_rate", &D::issue_rate, nullptr, 0.1},
      {"int_rate", &D::int_rate, nullptr, 0.2},
      {"special_rate", &D::special_rate, nullptr, 0.1},
      {"memory_rate", &D::memory_rate, nullptr, 0.3},
      {"tensor_flops_per_cycle", &D::tensor_flops_per_cycle, nullptr, 0.2},
      {"alu_latency", nullptr, &L::alu, 0.15},
      {"special_latency", nullptr, &L::special, 0.3},
      {"tensor_latency", nullptr, &L::tensor, 0.2},
      {"shared_latency", nullptr, &L::shared, 0.15},
      {"shuffle_latency", nullptr, &L::shuffle, 0.15},
      {"l1_latency", nullptr, &L::l1, 0.15},
      {"l2_latency", nullptr, &L::l2, 0.15},
      {"dram_latency", nullptr, &L::dram, 0.15},
      {"atomic_latency", nullptr, &L::atomic, 0.3},
      {"barrier_latency", nullptr, &L::barrier, 0.3},
      {"launch_seconds", &D::launch_seconds, nullptr, 0.3},
      {"next_launch_seconds", &D::next_launch_seconds, nullptr, 0.3},
      {"warp_start_cycles", &D::warp_start_cycles, nullptr, 0.4},
      {"barrier_warp_cycles", &D::barrier_warp_cycles, nullptr, 0.6},
      {"blocks_per_cycle", &D::blocks_per_cycle, nullptr, 0.2},
      {"norm", &D::norm, nullptr, 0.4},
      {"latency_norm", &D::latency_norm, nullptr, 0.4},
      {"overlap_warps", &D::overlap_warps, nullptr, 0.4},
      {"overlap_blocks", &D::overlap_blocks, nullptr, 0.6},
  };
  return parameters;
}

Fitted Fit(const simt::Device& start, double offset, bool fit_offset, const std::vector<std::string>& known,
           const std::vector<const CountedKernel*>& kernels, int rounds) {
  Fitted best{start, offset};
  const std::set<std::string> narrow(known.begin(), known.end());
  simt::Device origin = start;
  const auto objective = [&](Fitted& fitted) {
    double prior = 0;
    for (const FitParameter& parameter : FitParameters()) {
      const double deviation = parameter.deviation * (narrow.contains(parameter.name) ? kKnown : 1);
      const double away = std::log(parameter.Of(fitted.device) / parameter.Of(origin)) / deviation;
      prior += away * away;
    }
    return Loss(fitted, kernels) + kPriorWeight * prior;
  };
  double least = objective(best);
  std::vector<double> steps(FitParameters().size(), kFirstStep);
  for (int round = 0; round < rounds; ++round) {
    const double before = least;
    for (size_t i = 0; i < FitParameters().size(); ++i) {
      const FitParameter& parameter = FitParameters()[i];
      if (steps[i] < kLeastStep) continue;
      bool moved = false;
      for (const double step : {steps[i], -steps[i]}) {
        Fitted tried = best;
        parameter.Of(tried.device) *= std::exp(step);
        if (const double loss = objective(tried); loss < least) {
          least = loss;
          best = tried;
          moved = true;
          break;
        }
      }
      if (!moved) steps[i] /= 2;
    }
    for (const double step : {kOffsetStep / (1 + round), -kOffsetStep / (1 + round)}) {
      Fitted tried = best;
      tried.offset += step;
      if (!fit_offset || tried.offset < 0) continue;
      if (const double loss = objective(tried); loss < least) {
        least = loss;
        best = tried;
        break;
      }
    }
    if (round > 6 && before - least < 1e-5) break;
  }
  return best;
}

std::vector<Timed> Predict(const Fitted& fitted, const std::vector<const CountedKernel*>& kernels) {
  std::vector<Timed> timed;
  timed.reserve(kernels.size());
  for (const CountedKernel* kernel : kernels) {
    timed.push_back({kernel->problem, std::max(kernel->measured - fitted.offset, 0.2 * kernel->measured),
                     kernel->Predict(fitted.device)});
  }
  return timed;
}

std::vector<Timed> CrossValidate(const simt::Device& start, double offset, bool fit_offset,
                                 const std::vector<std::string>& known, const std::vector<CountedKernel>& kernels,
                                 int folds, int rounds) {
  std::map<std::string, int> fold_of;
  for (const CountedKernel& kernel : kernels) fold_of.emplace(kernel.family, 0);
  int number = 0;
  for (auto& [family, fold] : fold_of) fold = number++ % folds;
  std::vector<Timed> timed;
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<const CountedKernel*> seen, held_out;
    for (const CountedKernel& kernel : kernels)
      (fold_of.at(kernel.family) == fold ? held_out : seen).push_back(&kernel);
    if (seen.empty() || held_out.empty()) continue;
    const Fitted fitted = Fit(start, offset, fit_offset, known, seen, rounds);
    const std::vector<Timed> predicted = Predict(fitted, held_out);
    timed.insert(timed.end(), predicted.begin(), predicted.end());
  }
  return timed;
}

}  // namespace kgrpo::bench
