#include "loop/screen.h"

#include <kgrpo/support/sha256.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kgrpo {
namespace {

// Before anything was measured, times are taken to be off by this (standard deviation of the logarithm), with the
// weight of so many kernels.
constexpr double kPriorError = 0.2;
constexpr double kPriorKernels = 10;
constexpr double kPriorRatios = 2;  // kernels of ratio 1 that each problem begins with

std::string DigestOf(const std::string& source) {
  return Sha256(source).substr(0, 16);
}

std::optional<double> MetricOf(const RoundRecord& round, const char* name) {
  if (!round.evaluation || round.unchanged) return std::nullopt;  // an unchanged kernel keeps an earlier evaluation
  const auto& metrics = round.evaluation->metrics;
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace

Screening AskScreen(Evaluator& screen, const OpenProblem& problem, const ScreenLimit& limit, const std::string& source,
                    uint64_t seed) {
  Screening screening{screen.Evaluate(*problem.screened, source, seed)};
  Evaluation& evaluation = screening.evaluation;
  evaluation.modelled = true;
  evaluation.time_source = "screen: " + evaluation.time_source;
  const std::string& verdict = evaluation.verdict;
  const bool open = verdict == KGRPO_VERDICT_TIMEOUT || verdict == KGRPO_VERDICT_UNSUPPORTED ||
                    verdict == KGRPO_VERDICT_NOT_TIMED || limit.measured.contains(DigestOf(source));
  if (evaluation.correct) {
    evaluation.speedup = limit.scale * problem.screen_seconds / evaluation.seconds;
    evaluation.speedup_low = evaluation.speedup_high = 0;
    evaluation.seconds = problem.baseline.seconds / evaluation.speedup;
    evaluation.seconds_low = evaluation.seconds_high = evaluation.seconds;
  }
  screening.decides = !open && (!evaluation.correct || evaluation.speedup < limit.least);
  return screening;
}

double ScreenHistory::OfProblem::Scale() const {
  return std::exp(log_ratios / (static_cast<double>(ratios) + kPriorRatios));
}

double ScreenHistory::Error() const {
  return std::sqrt((kPriorKernels * kPriorError * kPriorError + squares_) /
                   (kPriorKernels + static_cast<double>(pairs_)));
}

std::vector<ScreenLimit> ScreenHistory::Limits() const {
  const double slower = std::exp(-config_.margin * Error());
  std::vector<ScreenLimit> limits;
  for (const OfProblem& problem : problems_)
    limits.push_back({problem.Scale(), problem.fastest * slower, problem.measured});
  return limits;
}

MetricMap ScreenHistory::Add(const std::vector<TrajectoryRecord>& trajectories) {
  std::vector<double> scales;  // factors with which the step's estimates were made
  for (const OfProblem& problem : problems_) scales.push_back(problem.Scale());
  double kernels = 0, decided = 0, audited = 0, refuted = 0;
  for (const TrajectoryRecord& trajectory : trajectories) {
    OfProblem& problem = problems_.at(trajectory.problem);
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (!round.evaluation || round.unchanged) continue;
      ++kernels;
      const bool is_decided = MetricOf(round, kScreenDecided).has_value();
      const bool audit = MetricOf(round, kScreenReward).has_value();
      const std::optional<double> estimate = MetricOf(round, kScreenSpeedup);
      decided += is_decided ? 1 : 0;
      audited += audit ? 1 : 0;
      if (is_decided || !round.evaluation->correct) continue;
      problem.fastest = std::max(problem.fastest, round.speedup);
      refuted += audit && estimate == 0.0 ? 1 : 0;
      // An audit measures the error and nothing else, so that the decided kernels are not known better for it.
      const bool is_new = audit || problem.measured.insert(DigestOf(round.answer.source)).second;
      if (!is_new || estimate.value_or(0) <= 0) continue;
      const double log_ratio = std::log(round.speedup / *estimate);
      squares_ += log_ratio * log_ratio;
      ++pairs_;
      if (audit) continue;
      problem.log_ratios += log_ratio + std::log(scales[trajectory.problem]);
      ++problem.ratios;
    }
  }
  AddAdvantages(trajectories);
  MetricMap metrics = {{"screen/kernels", kernels},
                       {"screen/decided", decided},
                       {"screen/audited", audited},
                       {"screen/refuted", refuted},
                       {"screen/error", Error()}};
  if (audits_ == 0) return metrics;
  metrics["screen/advantage_bias"] = bias_ / static_cast<double>(audits_);
  const double used = advantages_ + 2 * products_ + errors_;
  if (advantages_ > 0 && used > 0)
    metrics["screen/advantage_correlation"] = (advantages_ + products_) / std::sqrt(advantages_ * used);
  return metrics;
}

// An advantage is here the reward less the mean of its group: the same problem and round. An audited kernel's reward is
// the evaluator's. The estimate's is higher by e: with it, the kernel's advantage x would be higher by e (1 - 1 /
// group) and each other one of the group lower by e / group. So the group's sum of squares changes by 2 e x + e^2 (1 -
// 1 / group), and its sum of products with the exact advantages by e x.
void ScreenHistory::AddAdvantages(const std::vector<TrajectoryRecord>& trajectories) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const RoundRecord*>> groups;
  for (const TrajectoryRecord& trajectory : trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) groups[{trajectory.problem, round.round}].push_back(&round);
  }
  for (const auto& [key, rounds] : groups) {
    const auto size = static_cast<double>(rounds.size());
    double mean = 0;
    for (const RoundRecord* round : rounds) mean += round->reward / size;
    for (const RoundRecord* round : rounds) {
      const double advantage = round->reward - mean;
      advantages_ += advantage * advantage;
      const std::optional<double> estimated = MetricOf(*round, kScreenReward);
      if (!estimated || config_.audit == 0) continue;  // a resumed run may have turned audits off
      const double error = *estimated - round->reward, shift = error * (1 - 1 / size);
      products_ += error * advantage / config_.audit;  // an audit stands for 1 / audit kernels
      errors_ += error * shift / config_.audit;
      bias_ += shift;
      ++audits_;
    }
  }
}

}  // namespace kgrpo
