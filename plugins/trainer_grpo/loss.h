// loss.h - the GRPO family of losses and their exact derivatives by the log-probabilities, for one sequence at a time.
// Called by grpo_trainer.cc in double precision; tested in float as well.
//
// Every loss here is  sum over sequences i of weight_i * sum over tokens t of L_it,  with weights that depend only on
// the sizes of the accumulation window (SequenceWeight). So a window may be cut into any pieces: the pieces' gradients
// add up to the window's.
//
// With w the importance ratio exp(log pi - log pi_old) of the token, or of the sequence: exp(mean of that over its
// tokens),
//   grpo, bnpo, dr_grpo, dapo   L = -min(min(w, delta) A, clip(w, 1 - epsilon_low, 1 + epsilon_high) A) * correction
//   cispo                       L = -min(w, epsilon_high) A log pi * correction, with the ratio held constant
// plus beta * KL, where KL is an estimate against the reference policy from the sampled token (Schulman 2020):
//   k1 = log pi - log ref,  k2 = k1^2 / 2,  k3 = exp(-k1) + k1 - 1,
// times w if kl_ratio_correction is set. If log ref - log pi exceeds kl_clamp, the estimate continues along its
// tangent: the slope of k3 grows like ref / pi, so one token that the policy has all but excluded would outweigh every
// other of its optimiser step.
// Less entropy_weight * H, the entropy of the token's distribution: entropy_coef times its mean over the window's
// tokens, whatever the loss divides by (TRL). Its gradient is estimated from the sampled token, as those of the other
// terms: its mean over the policy's tokens of (log pi + H) d log pi is -dH; w corrects for tokens that were drawn from
// another policy. H, which depends on no token, is the baseline. Sources: DeepSeekMath (2402.03300), DAPO (2503.14476),
// Dr. GRPO (2503.20783), GSPO (2507.18071), MiniMax-M1 (2506.13585, CISPO), INTELLECT-2 (2505.07291, delta),
// DeepSeek-V3.2 (2512.02556, the ratio in the KL term).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace kgrpo::grpo {

enum class LossType { kGrpo, kBnpo, kDrGrpo, kDapo, kCispo };
enum class RatioLevel { kToken, kSequence };
enum class KlEstimator { kK1, kK2, kK3 };

struct LossOptions {
  LossType type = LossType::kGrpo;
  RatioLevel level = RatioLevel::kToken;
  double epsilon_low = 0.2;
  double epsilon_high = 0.2;  // of cispo: the largest ratio itself, about 5
  double delta = std::numeric_limits<double>::infinity();
  double beta = 0.04;
  KlEstimator kl_estimator = KlEstimator::kK3;
  double kl_clamp = 3;
  bool kl_ratio_correction = false;
  double entropy_coef = 0;  // the gradient of this term is not the derivative of its value: see above
};

// The sizes that losses are divided by. Tokens are those that count: none of masked sequences, which do count as
// sequences.
struct WindowSizes {
  size_t sequences = 0;  // of the accumulation window
  size_t tokens = 0;
  size_t batch_sequences = 0;  // of everything that the update learns from
  size_t batch_tokens = 0;
  size_t max_completion_length = 0;
};

// The factor of the summed token losses of a sequence of `tokens` tokens.
//   grpo      1 / (sequences * its tokens)          mean over sequences of the mean over tokens
//   bnpo      1 / tokens                            mean over the window's tokens
//   dr_grpo   1 / (sequences * max_completion_length)
//   dapo, cispo   1 / (batch_tokens * sequences / batch_sequences)
inline double SequenceWeight(LossType type, size_t tokens, const WindowSizes& sizes) {
  auto at_least_one = [](size_t value) { return static_cast<double>(std::max<size_t>(value, 1)); };
  switch (type) {
    case LossType::kGrpo: return 1.0 / (at_least_one(sizes.sequences) * at_least_one(tokens));
    case LossType::kBnpo: return 1.0 / at_least_one(sizes.tokens);
    case LossType::kDrGrpo: return 1.0 / (at_least_one(sizes.sequences) * at_least_one(sizes.max_completion_length));
    case LossType::kDapo:
    case LossType::kCispo:
      return at_least_one(sizes.batch_sequences) / (at_least_one(sizes.batch_tokens) * at_least_one(sizes.sequences));
  }
  return 0;
}

// One sequence's inputs: arrays of as many elements as its completion has tokens.
template <typename T>
struct SequenceInputs {
  std::span<const T> logprobs;            // under the policy that is trained
  std::span<const T> old_logprobs;        // under the policy that the ratio is taken against
  std::span<const T> reference_logprobs;  // empty where no KL is wanted
  std::span<const T> corrections;         // constant factors of the policy term; empty: 1
  T advantage = 0;
  std::span<const T> entropies;  // of each token's distribution, nats; used if entropy_weight is not 0
  T entropy_weight = 0;          // entropy_coef over the window's tokens
  bool policy_term = true;       // false: the sequence counts, with its KL and entropy terms only
};

// Sums over the sequences that were added; metrics are computed from them.
struct LossStatistics {
  size_t tokens = 0;
  double kl_sum = 0;        // over tokens
  size_t ratios = 0;        // tokens, or sequences at sequence level
  size_t low_clipped = 0;   // ratios below the clip range whose advantage is negative
  size_t high_clipped = 0;  // ratios above it whose advantage is positive
  double low_fraction_min = std::numeric_limits<double>::infinity();  // least and greatest fraction within a sequence
  double high_fraction_max = -std::numeric_limits<double>::infinity();
};

namespace internal {

// A function of the log-ratio: its value and derivative.
template <typename T>
struct Term {
  T value = 0;
  T derivative = 0;
};

// -min(min(w, delta) A, clip(w) A). Where both branches are equal and only one has a slope, the slope is the mean of
// both, as in PyTorch's minimum; a NaN comes out as one.
template <typename T>
Term<T> ClippedTerm(const LossOptions& options, T ratio, T advantage) {
  const T low = static_cast<T>(1 - options.epsilon_low), high = static_cast<T>(1 + options.epsilon_high);
  const T delta = static_cast<T>(options.delta);
  const T capped = ratio > delta ? delta : ratio;
  const T clipped = ratio < low ? low : (ratio > high ? high : ratio);
  const T capped_slope = ratio > delta ? T(0) : T(1);
  const T clipped_slope = ratio < low || ratio > high ? T(0) : T(1);
  const T first = capped * advantage, second = clipped * advantage;
  T slope = (capped_slope + clipped_slope) / 2;
  if (first < second) slope = capped_slope;
  if (first > second) slope = clipped_slope;
  return {first > second ? -second : -first, slope == 0 ? T(0) : -slope * advantage * ratio};
}

// The KL estimate and its derivative by the policy's log-probability, without the clamp and the ratio.
template <typename T>
Term<T> KlEstimate(KlEstimator estimator, T logprob, T reference) {
  const T difference = logprob - reference;
  switch (estimator) {
    case KlEstimator::kK1: return {difference, T(1)};
    case KlEstimator::kK2: return {difference * difference / 2, difference};
    case KlEstimator::kK3: {
      const T inverse_minus_one = std::expm1(-difference);  // exact near 0, where policies usually are
      return {inverse_minus_one + difference, -inverse_minus_one};
    }
  }
  return {};
}

// The estimate, continued along its tangent if log ref - log pi is above kl_clamp. A NaN comes out as one.
template <typename T>
Term<T> KlTerm(const LossOptions& options, T logprob, T reference) {
  const T excess = std::max(reference - logprob - static_cast<T>(options.kl_clamp), T(0));
  Term<T> kl = KlEstimate(options.kl_estimator, logprob + excess, reference);
  kl.value -= kl.derivative * excess;
  return kl;
}

}  // namespace internal

// Returns weight * sum of the sequence's token losses, writes its derivative by each log-probability to `gradient` (as
// many elements as tokens) and adds to `statistics`. A NaN in the inputs gives a loss of NaN.
template <typename T>
T SequenceLoss(const LossOptions& options, const SequenceInputs<T>& in, T weight, std::span<T> gradient,
               LossStatistics& statistics) {
  const size_t count = in.logprobs.size();
  const bool sequence_level = options.level == RatioLevel::kSequence;
  const bool cispo = options.type == LossType::kCispo;
  const T beta = static_cast<T>(options.beta);
  const T cispo_limit = static_cast<T>(options.epsilon_high);
  const T low = static_cast<T>(1 - options.epsilon_low);
  const T high = cispo ? cispo_limit : static_cast<T>(1 + options.epsilon_high);

  T mean_log_ratio = 0;
  for (size_t t = 0; t < count; ++t) mean_log_ratio += in.logprobs[t] - in.old_logprobs[t];
  mean_log_ratio /= static_cast<T>(std::max<size_t>(count, 1));

  T loss = 0, bonus = 0;
  T through_sequence_ratio = 0;  // derivative of the summed token losses by the sequence's log-ratio
  size_t low_clipped = 0, high_clipped = 0;
  for (size_t t = 0; t < count; ++t) {
    const T ratio = std::exp(sequence_level ? mean_log_ratio : in.logprobs[t] - in.old_logprobs[t]);
    const T correction = in.corrections.empty() ? T(1) : in.corrections[t];
    T through_ratio = 0;  // by this token's log-ratio
    T direct = 0;         // by its log-probability otherwise
    T token_loss = 0;
    if (cispo) {
      const T constant = -(ratio > cispo_limit ? cispo_limit : ratio) * in.advantage * correction;
      token_loss = constant * in.logprobs[t];
      direct = constant;
    } else {
      const internal::Term<T> term = internal::ClippedTerm(options, ratio, in.advantage);
      token_loss = term.value * correction;
      through_ratio = term.derivative * correction;
    }
    if (!in.policy_term) token_loss = through_ratio = direct = 0;
    if (!in.reference_logprobs.empty()) {
      internal::Term<T> kl = internal::KlTerm(options, in.logprobs[t], in.reference_logprobs[t]);
      if (options.kl_ratio_correction) {
        kl.value *= ratio;
        kl.derivative *= ratio;
      }
      statistics.kl_sum += static_cast<double>(kl.value);
      if (beta != 0) {
        token_loss += beta * kl.value;
        direct += beta * kl.derivative;
        if (options.kl_ratio_correction) through_ratio += beta * kl.value;
      }
    }
    loss += token_loss;
    gradient[t] = weight * (sequence_level ? direct : direct + through_ratio);
    if (in.entropy_weight != 0) {  // the sequence's mean ratio would be no importance weight of the token
      const T own = std::exp(in.logprobs[t] - in.old_logprobs[t]);
      bonus += in.entropy_weight * in.entropies[t];
      gradient[t] += in.entropy_weight * own * (in.logprobs[t] + in.entropies[t]);
    }
    through_sequence_ratio += through_ratio;

    // As TRL counts: delta is applied before, and only clips against the advantage's sign do anything.
    const T counted = !cispo && ratio > static_cast<T>(options.delta) ? static_cast<T>(options.delta) : ratio;
    low_clipped += !cispo && counted < low && in.advantage < 0 ? 1 : 0;
    high_clipped += counted > high && in.advantage > 0 ? 1 : 0;
  }
  if (sequence_level) {
    // Each token's log-probability moves the sequence's log-ratio by 1 / count.
    for (size_t t = 0; t < count; ++t) gradient[t] += weight * through_sequence_ratio / static_cast<T>(count);
  }

  if (count > 0) {
    statistics.tokens += count;
    statistics.ratios += sequence_level ? 1 : count;
    statistics.low_clipped += sequence_level ? low_clipped / count : low_clipped;
    statistics.high_clipped += sequence_level ? high_clipped / count : high_clipped;
    const auto size = static_cast<double>(count);
    statistics.low_fraction_min = std::min(statistics.low_fraction_min, static_cast<double>(low_clipped) / size);
    statistics.high_fraction_max = std::max(statistics.high_fraction_max, static_cast<double>(high_clipped) / size);
  }
  return weight * loss - bonus;
}

}  // namespace kgrpo::grpo
