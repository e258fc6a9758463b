// advantage.h - from rewards to advantages: returns within a trajectory, a baseline, a scale. Called by
// grpo_trainer.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
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
std::pair<uint32_t, uint32_t> GroupOf(AdvantageGroup group, const RoundOutcome& sample);

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
Advantages ComputeAdvantages(const AdvantageOptions& options, std::span<const RoundOutcome> samples);

}  // namespace kgrpo::grpo
