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

// C(n, k) / C(m, k) for n <= m.
double SubsetShare(size_t n, size_t m, size_t k) {
  if (n < k) return 0;
  double share = 1;
  for (size_t i = 0; i < k; ++i) share *= static_cast<double>(n - i) / static_cast<double>(m - i);
  return share;
}

// The mean, over all subsets of k of the ascending values, of a subset's greatest (Walder and Karkhanis 2025, equation
// 12): value number j, from 0, is the greatest of C(j, k - 1) of them.
double MeanOfMax(std::span<const double> ascending, size_t k) {
  double mean = 0;
  for (size_t j = 0; j < ascending.size(); ++j) {
    mean += ascending[j] * (SubsetShare(j + 1, ascending.size(), k) - SubsetShare(j, ascending.size(), k));
  }
  return mean;
}

// The same over the subsets that contain `value` and k - 1 of the others.
double MeanOfMaxWith(double value, std::span<const double> ascending_others, size_t k) {
  std::vector<double> raised(ascending_others.begin(), ascending_others.end());
  for (double& other : raised) other = std::max(other, value);
  return k == 1 ? value : MeanOfMax(raised, k - 1);
}

// Of each value of a group of at least two; see the header.
std::vector<double> MaxAtK(size_t best_of, std::span<const double> values) {
  const size_t k = std::min(best_of, values.size());
  const size_t baseline = k == values.size() ? k - 1 : k;
  std::vector<double> ascending(values.begin(), values.end()), result;
  std::sort(ascending.begin(), ascending.end());
  for (const double value : values) {
    std::vector<double> others = ascending;
    others.erase(std::lower_bound(others.begin(), others.end(), value));
    result.push_back(static_cast<double>(k) * (MeanOfMaxWith(value, others, k) - MeanOfMax(others, baseline)));
  }
  return result;
}

// The max@k estimate of each sample; empty for the mean.
std::vector<double> MaxAtKEstimates(const AdvantageOptions& options, std::span<const RoundOutcome> samples,
                                    std::span<const double> values, const std::vector<bool>& cut) {
  if (options.estimator == AdvantageEstimator::kMean) return {};
  std::map<std::pair<uint32_t, uint32_t>, std::vector<size_t>> groups;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!cut[i]) groups[GroupOf(options.group, samples[i])].push_back(i);
  }
  std::vector<double> estimates(samples.size());
  for (const auto& [key, members] : groups) {
    if (members.size() < 2) continue;
    std::vector<double> own;
    for (const size_t i : members) own.push_back(values[i]);
    const std::vector<double> made = MaxAtK(options.best_of, own);
    for (size_t m = 0; m < members.size(); ++m) estimates[members[m]] = made[m];
  }
  return estimates;
}

}  // namespace

std::pair<uint32_t, uint32_t> GroupOf(AdvantageGroup group, const RoundOutcome& sample) {
  switch (group) {
    case AdvantageGroup::kBatch: return {0, 0};
    case AdvantageGroup::kProblem: return {sample.problem, 0};
    case AdvantageGroup::kProblemRound: return {sample.problem, sample.round};
  }
  return {0, 0};
}

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
  const std::vector<double> estimates = MaxAtKEstimates(options, samples, values, result.cut);
  for (size_t i = 0; i < count; ++i) {
    if (result.cut[i]) continue;
    const trainer::Summary& group = groups.at(GroupOf(options.group, samples[i]));
    const auto size = static_cast<double>(group.count());
    result.zero_variance[i] = group.standard_deviation() <= kZeroDeviation;
    // Equal values may differ from their mean by rounding, which AdamW would scale up to a whole step.
    double difference = result.zero_variance[i] ? 0.0 : values[i] - group.mean();
    // x_i - mean of the others = n / (n - 1) * (x_i - mean of all)
    if (options.leave_one_out && group.count() > 1) difference *= size / (size - 1);
    if (!estimates.empty()) difference = result.zero_variance[i] ? 0.0 : estimates[i];
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
      case AdvantageScale::kBatch: advantage /= batch.standard_deviation() + kScaleEpsilon; break;
      case AdvantageScale::kRootMeanSquare: advantage /= root_mean_square + kScaleEpsilon; break;
      case AdvantageScale::kNone: break;
    }
    if (options.cap > 0) advantage = std::clamp(advantage, -options.cap, options.cap);
  }
  result.values = std::move(values);
  return result;
}

}  // namespace kgrpo::grpo
