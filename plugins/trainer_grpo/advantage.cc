#include "trainer_grpo/advantage.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "trainer_shared/metrics.h"

namespace kgrpo::grpo {
namespace {

constexpr double kScaleEpsilon = 1e-4;  // TRL's
constexpr double kZeroDeviation = 1e-8;

// Sets the returns, and which of them are cut.
void ComputeReturns(double gamma, std::span<const RoundOutcome> samples, Advantages& result) {
  // Indices of each trajectory's samples by round; std::map keeps them in order.
  std::map<std::pair<uint64_t, uint32_t>, size_t> by_round;
  for (size_t i = 0; i < samples.size(); ++i) {
    const RoundOutcome& sample = samples[i];
    const std::string where = "sample " + std::to_string(i) + ": trajectory " + std::to_string(sample.trajectory) +
                              ", round " + std::to_string(sample.round);
    if (sample.round >= sample.rounds) {
      throw Error(KGRPO_ERROR_INVALID,
                  where + " is past the trajectory's " + std::to_string(sample.rounds) + " rounds");
    }
    if (!by_round.emplace(std::pair(sample.trajectory, sample.round), i).second) {
      throw Error(KGRPO_ERROR_INVALID, where + " appears twice: give each trajectory of a batch its own number");
    }
  }
  result.returns.resize(samples.size());
  result.cut.resize(samples.size());
  std::optional<size_t> after;  // the sample last visited
  for (auto entry = by_round.rbegin(); entry != by_round.rend(); ++entry) {
    const size_t i = entry->second;
    const RoundOutcome& sample = samples[i];
    if (after && samples[*after].trajectory != sample.trajectory) after.reset();
    const uint32_t next = after ? samples[*after].round : sample.rounds;
    result.returns[i] = sample.reward;
    if (after) result.returns[i] += std::pow(gamma, static_cast<double>(next - sample.round)) * result.returns[*after];
    result.cut[i] = gamma > 0 && (next != sample.round + 1 || (after && result.cut[*after]));
    after = i;
  }
}

double IdleReturn(double gamma, const RoundOutcome& sample) {
  double sum = 0, factor = 1;
  for (uint32_t round = sample.round; round < sample.rounds; ++round, factor *= gamma) sum += factor;
  return sum == 0 ? 0 : sample.idle_reward * sum;
}

std::pair<uint32_t, uint32_t> GroupOf(AdvantageGroup group, const RoundOutcome& sample) {
  switch (group) {
    case AdvantageGroup::kBatch:
      return {0, 0};
    case AdvantageGroup::kProblem:
      return {sample.problem, 0};
    case AdvantageGroup::kProblemRound:
      return {sample.problem, sample.round};
  }
  return {0, 0};
}

}  // namespace

Advantages ComputeAdvantages(const AdvantageOptions& options, std::span<const RoundOutcome> samples) {
  const size_t count = samples.size();
  Advantages result;
  ComputeReturns(options.gamma, samples, result);
  result.advantages.resize(count);
  result.zero_variance.resize(count);

  std::vector<double> values = result.returns;
  std::map<std::pair<uint32_t, uint32_t>, trainer::Summary> groups;
  trainer::Summary batch;
  size_t whole = 0;  // samples whose return is not cut
  for (size_t i = 0; i < count; ++i) {
    if (result.cut[i]) continue;
    ++whole;
    if (options.idle_baseline) values[i] -= IdleReturn(options.gamma, samples[i]);
    groups[GroupOf(options.group, samples[i])].Add(values[i]);
    batch.Add(values[i]);
  }

  double squares = 0;
  for (size_t i = 0; i < count; ++i) {
    if (result.cut[i]) continue;
    const trainer::Summary& group = groups.at(GroupOf(options.group, samples[i]));
    const auto size = static_cast<double>(group.count());
    result.zero_variance[i] = group.standard_deviation() <= kZeroDeviation;
    // Equal values may differ from their mean by rounding, which AdamW would scale up to a whole step.
    double difference = result.zero_variance[i] ? 0.0 : values[i] - group.mean();
    // x_i - mean of the others = n / (n - 1) * (x_i - mean of all)
    if (options.leave_one_out && group.count() > 1) difference *= size / (size - 1);
    result.advantages[i] = difference;
    squares += difference * difference;
  }

  const double root_mean_square = whole == 0 ? 0 : std::sqrt(squares / static_cast<double>(whole));
  for (size_t i = 0; i < count; ++i) {
    if (result.cut[i]) continue;
    double& advantage = result.advantages[i];
    switch (options.scale) {
      case AdvantageScale::kGroup:
        advantage /= groups.at(GroupOf(options.group, samples[i])).standard_deviation() + kScaleEpsilon;
        break;
      case AdvantageScale::kBatch:
        advantage /= batch.standard_deviation() + kScaleEpsilon;
        break;
      case AdvantageScale::kRootMeanSquare:
        advantage /= root_mean_square + kScaleEpsilon;
        break;
      case AdvantageScale::kNone:
        break;
    }
    if (options.cap > 0) advantage = std::clamp(advantage, -options.cap, options.cap);
  }
  return result;
}

}  // namespace kgrpo::grpo
