#include "loop/problem_weights.h"

#include <algorithm>
#include <cmath>

namespace kgrpo {
namespace {

constexpr size_t kVisits = 4;    // steps of a problem that count
constexpr double kLeast = 0.1;   // a problem that is decided today may not be later
constexpr double kUnknown = -1;  // too few rounds

using Visits = std::map<uint64_t, std::vector<PlayedRound>>;

double Undecided(const Visits& visits) {
  double rounds = 0, faster = 0;
  for (const auto& [step, visit] : visits) {
    rounds += static_cast<double>(visit.size());
    faster += static_cast<double>(std::ranges::count_if(visit, [](const auto& round) { return round.speedup > 1; }));
  }
  return rounds == 0 ? kUnknown : 1 - 2 * std::abs(faster / rounds - 0.5);
}

double Spread(const Visits& visits) {
  struct Sums {
    double count = 0, rewards = 0;
  };
  std::map<uint32_t, Sums> by_round;
  for (const auto& [step, visit] : visits) {
    for (const PlayedRound& round : visit) ++by_round[round.round].count, by_round[round.round].rewards += round.reward;
  }
  double squares = 0, freedom = 0;
  for (const auto& [step, visit] : visits) {
    for (const PlayedRound& round : visit) {
      const Sums& sums = by_round[round.round];
      squares += std::pow(round.reward - sums.rewards / sums.count, 2);
    }
  }
  for (const auto& [round, sums] : by_round) freedom += sums.count - 1;
  return freedom == 0 ? kUnknown : std::sqrt(squares / freedom);
}

}  // namespace

void ProblemWeights::Add(std::span<const PlayedRound> rounds) {
  for (const PlayedRound& round : rounds) {
    if (round.demonstration) continue;
    Visits& visits = visits_.at(round.problem);
    visits[round.step].push_back(round);
    if (visits.size() > kVisits) visits.erase(visits.begin());
  }
}

std::vector<double> ProblemWeights::Get() const {
  std::vector<double> weights;
  for (const Visits& visits : visits_) {
    weights.push_back(by_ == ProblemWeighting::kSolveRate      ? Undecided(visits)
                      : by_ == ProblemWeighting::kRewardSpread ? Spread(visits)
                                                               : kUnknown);
  }
  const double most = by_ == ProblemWeighting::kRewardSpread ? *std::ranges::max_element(weights) : 1;
  for (double& weight : weights) weight = weight == kUnknown || most <= 0 ? 1 : std::max(kLeast, weight / most);
  return weights;
}

}  // namespace kgrpo
