// advantage.h - from rewards to advantages: returns within a trajectory, a baseline, a scale. Called by
// grpo_trainer.cc, and by trainers of one's own as <kgrpo/sdk/advantage.h>.
#pragma once
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::grpo {

// Which samples are compared with each other: all of the batch, those of one problem, or those of one problem and
// round.
enum class AdvantageGroup { kBatch, kProblem, kProblemRound };

// How much better a sample is than its group, or how much it adds to the best of `best_of` samples.
enum class AdvantageEstimator { kMean, kMaxAtK };

// The divisor of differences from the baseline: the standard deviation of the group or of the batch, the root mean
// square of all differences in the batch, or nothing. 1e-4 is added to each, as TRL does.
enum class AdvantageScale { kGroup, kBatch, kRootMeanSquare, kNone };

struct AdvantageOptions {
  double gamma = 0.4;  // discount of later rounds' rewards
  AdvantageGroup group = AdvantageGroup::kBatch;
  AdvantageEstimator estimator = AdvantageEstimator::kMean;
  uint32_t best_of = 2;  // k of kMaxAtK; of a smaller group, the group's size
  AdvantageScale scale = AdvantageScale::kGroup;
  bool leave_one_out = false;  // the baseline of a sample is the mean of the others of its group
  bool idle_baseline = false;  // the return of doing nothing from here is subtracted first
  double cap = 0;              // advantages are clamped to [-cap, cap]; 0: not
};

// One round of one trajectory; see kgrpo_sample.
struct RoundOutcome {
  double reward = 0;
  double idle_reward = 0;
  uint64_t trajectory = 0;
  uint32_t round = 0;
  uint32_t rounds = 1;
  uint32_t problem = 0;
};

struct Advantages {
  std::vector<double> returns;  // discounted, without the idle baseline
  std::vector<double> values;   // what is compared: with idle_baseline less the idle return
  std::vector<double> advantages;
  std::vector<bool> cut;            // whether the return lacks the reward of a later round: see below
  std::vector<bool> zero_variance;  // whether all of the sample's group have the same value: nothing to learn from
};

// The group of a sample: equal for samples that are compared.
inline std::pair<uint32_t, uint32_t> GroupOf(AdvantageGroup group, const RoundOutcome& sample) {
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

// Order of the samples does not matter. Throws KGRPO_ERROR_INVALID when a trajectory has a round twice, or a round past
// its `rounds`.
//
//   G_t = sum over later rounds k of the trajectory, t included, of gamma^(k - t) r_k
//   x_t = G_t                                                        or, with idle_baseline,
//   x_t = G_t - idle_reward_t * (1 + gamma + ... + gamma^(rounds - t - 1))
//   d   = x - mean of its group                                      or, with leave_one_out, of the group's other
//   members A   = d / (std + 1e-4), std with n - 1 below and of x            or  d / (rms of d over the batch + 1e-4),
//   or  d
//
// With kMaxAtK and k = best_of
//   d   = k * (M_t - m_t)
// where M_t is the mean, over the subsets of k of its group that contain the sample, of the largest x, and m_t the same
// over the subsets of k of the other members. d times the gradient of log pi is an unbiased estimate of the gradient of
// the largest of k (Walder and Karkhanis, 2505.15201, equation 19 times the group's size, with a baseline that does not
// depend on the sample). A group of k has no such subset: m_t is of k - 1 of them, as in their equation 33.
//
// Samples of a group whose values are all equal have advantage 0, and so has one that is alone in its group.
//
// If gamma > 0 and a later round of the trajectory is missing (its coder failed, for example), the return lacks that
// round's reward: it is cut, and says nothing about the suggestion. Such a sample takes no part: it is in no mean and
// no standard deviation, and has advantage 0.
inline Advantages ComputeAdvantages(const AdvantageOptions& options, std::span<const RoundOutcome> samples);

namespace internal {

// Count, mean and spread of a stream of numbers, in one pass (Welford 1962).
struct Spread {
  size_t size = 0;
  double mean_so_far = 0, squares = 0;

  void Add(double value) {
    ++size;
    const double distance = value - mean_so_far;
    mean_so_far += distance / static_cast<double>(size);
    squares += distance * (value - mean_so_far);
  }
  size_t count() const { return size; }
  double mean() const { return mean_so_far; }
  double standard_deviation() const { return size < 2 ? 0.0 : std::sqrt(squares / static_cast<double>(size - 1)); }
};

inline constexpr double kScaleEpsilon = 1e-4;  // TRL's
inline constexpr double kZeroDeviation = 1e-8;

// Sets the returns, and which of them are cut.
inline void ComputeReturns(double gamma, std::span<const RoundOutcome> samples, Advantages& result) {
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

inline double IdleReturn(double gamma, const RoundOutcome& sample) {
  double sum = 0, factor = 1;
  for (uint32_t round = sample.round; round < sample.rounds; ++round, factor *= gamma) sum += factor;
  return sum == 0 ? 0 : sample.idle_reward * sum;
}

// C(n, k) / C(m, k) for n <= m.
inline double SubsetShare(size_t n, size_t m, size_t k) {
  if (n < k) return 0;
  double share = 1;
  for (size_t i = 0; i < k; ++i) share *= static_cast<double>(n - i) / static_cast<double>(m - i);
  return share;
}

// The mean, over all subsets of k of the ascending values, of a subset's greatest (Walder and Karkhanis 2025, equation
// 12): value number j, from 0, is the greatest of C(j, k - 1) of them.
inline double MeanOfMax(std::span<const double> ascending, size_t k) {
  double mean = 0;
  for (size_t j = 0; j < ascending.size(); ++j) {
    mean += ascending[j] * (SubsetShare(j + 1, ascending.size(), k) - SubsetShare(j, ascending.size(), k));
  }
  return mean;
}

// The same over the subsets that contain `value` and k - 1 of the others.
inline double MeanOfMaxWith(double value, std::span<const double> ascending_others, size_t k) {
  std::vector<double> raised(ascending_others.begin(), ascending_others.end());
  for (double& other : raised) other = std::max(other, value);
  return k == 1 ? value : MeanOfMax(raised, k - 1);
}

// Of each value of a group of at least two; see the header.
inline std::vector<double> MaxAtK(size_t best_of, std::span<const double> values) {
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
inline std::vector<double> MaxAtKEstimates(const AdvantageOptions& options, std::span<const RoundOutcome> samples,
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

}  // namespace internal

inline Advantages ComputeAdvantages(const AdvantageOptions& options, std::span<const RoundOutcome> samples) {
  const size_t count = samples.size();
  Advantages result;
  internal::ComputeReturns(options.gamma, samples, result);
  result.advantages.resize(count);
  result.zero_variance.resize(count);

  std::vector<double> values = result.returns;
  std::map<std::pair<uint32_t, uint32_t>, internal::Spread> groups;
  internal::Spread batch;
  size_t whole = 0;  // samples whose return is not cut
  for (size_t i = 0; i < count; ++i) {
    if (result.cut[i]) continue;
    ++whole;
    if (options.idle_baseline) values[i] -= internal::IdleReturn(options.gamma, samples[i]);
    groups[GroupOf(options.group, samples[i])].Add(values[i]);
    batch.Add(values[i]);
  }

  double squares = 0;
  const std::vector<double> estimates = internal::MaxAtKEstimates(options, samples, values, result.cut);
  for (size_t i = 0; i < count; ++i) {
    if (result.cut[i]) continue;
    const internal::Spread& group = groups.at(GroupOf(options.group, samples[i]));
    const auto size = static_cast<double>(group.count());
    result.zero_variance[i] = group.standard_deviation() <= internal::kZeroDeviation;
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
        advantage /= groups.at(GroupOf(options.group, samples[i])).standard_deviation() + internal::kScaleEpsilon;
        break;
      case AdvantageScale::kBatch:
        advantage /= batch.standard_deviation() + internal::kScaleEpsilon;
        break;
      case AdvantageScale::kRootMeanSquare:
        advantage /= root_mean_square + internal::kScaleEpsilon;
        break;
      case AdvantageScale::kNone:
        break;
    }
    if (options.cap > 0) advantage = std::clamp(advantage, -options.cap, options.cap);
  }
  result.values = std::move(values);
  return result;
}

}  // namespace kgrpo::grpo
