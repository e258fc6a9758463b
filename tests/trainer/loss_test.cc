// Losses and their gradients against TRL's own code (tests/golden/trainer/make_losses.py), and their properties.
#include "trainer_grpo/loss.h"

#include "test.h"

namespace kgrpo::grpo {
namespace {

const json& Golden() {
  static const json golden = json::parse(std::ifstream(KGRPO_BINARY_DIR "/test_data/trainer/losses.json"));
  return golden;
}

LossOptions OptionsOf(const json& c) {
  static const std::map<std::string, LossType> types = {{"grpo", LossType::kGrpo},
                                                        {"bnpo", LossType::kBnpo},
                                                        {"dr_grpo", LossType::kDrGrpo},
                                                        {"dapo", LossType::kDapo},
                                                        {"cispo", LossType::kCispo}};
  static const std::map<std::string, KlEstimator> estimators = {
      {"k1", KlEstimator::kK1}, {"k2", KlEstimator::kK2}, {"k3", KlEstimator::kK3}};
  LossOptions options;
  options.type = types.at(c.at("loss_type"));
  options.level = c.at("level") == "token" ? RatioLevel::kToken : RatioLevel::kSequence;
  options.epsilon_low = c.at("epsilon");
  options.epsilon_high = c.at("epsilon_high");
  if (!c.at("delta").is_null()) options.delta = c.at("delta");
  options.beta = c.at("beta");
  options.kl_estimator = estimators.at(c.at("kl"));
  if (c.contains("kl_clamp")) options.kl_clamp = c.at("kl_clamp");  // TRL has none; its cases are far below the default
  options.kl_ratio_correction = c.at("kl_ratio_correction");
  return options;
}

// A batch and what it gave.
template <typename T>
struct Result {
  T loss = 0;
  std::vector<std::vector<T>> gradient;
  LossStatistics statistics;
};

template <typename T>
Result<T> RunCase(const json& c) {
  const json& inputs = Golden().at("inputs");
  auto rows = [&](const char* name) { return inputs.at(name).get<std::vector<std::vector<T>>>(); };
  const auto policy = rows("policy"), reference = rows("reference"), correction = rows("correction");
  const auto old = c.at("on_policy").get<bool>() ? policy : rows("old");
  const auto advantages = Golden().at("loss_advantages").at(c.at("scale").get<std::string>()).get<std::vector<T>>();
  const LossOptions options = OptionsOf(c);

  auto masked = [&](size_t i) { return !c.at("masked_row").is_null() && c.at("masked_row").get<size_t>() == i; };
  WindowSizes sizes;
  sizes.sequences = sizes.batch_sequences = policy.size();
  for (size_t i = 0; i < policy.size(); ++i) sizes.tokens += masked(i) ? 0 : policy[i].size();
  sizes.batch_tokens = sizes.tokens;
  sizes.max_completion_length = Golden().at("max_completion_length");

  Result<T> result;
  for (size_t i = 0; i < policy.size(); ++i) {
    result.gradient.emplace_back(policy[i].size(), T(0));
    if (masked(i)) continue;
    SequenceInputs<T> in;
    in.logprobs = policy[i];
    in.old_logprobs = old[i];
    if (options.beta != 0) in.reference_logprobs = reference[i];
    if (c.at("corrected").get<bool>()) in.corrections = correction[i];
    in.advantage = advantages[i];
    result.loss += SequenceLoss<T>(options, in, static_cast<T>(SequenceWeight(options.type, policy[i].size(), sizes)),
                                   result.gradient[i], result.statistics);
  }
  return result;
}

template <typename T>
void ExpectTrl(double tolerance) {
  ASSERT_GE(Golden().at("cases").size(), 250u);
  for (const json& c : Golden().at("cases")) {
    json named = c;
    named.erase("gradient");
    SCOPED_TRACE(named.dump());
    const Result<T> result = RunCase<T>(c);
    const double loss = c.at("loss");
    double squares = 0, error = 0;
    const auto expected = c.at("gradient").get<std::vector<std::vector<double>>>();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(expected[i].size(), result.gradient[i].size());
      for (size_t t = 0; t < expected[i].size(); ++t) {
        squares += expected[i][t] * expected[i][t];
        error += std::pow(static_cast<double>(result.gradient[i][t]) - expected[i][t], 2);
      }
    }
    // A loss is a sum of terms of either sign: its error is measured against their size, which the gradient has too.
    EXPECT_NEAR(static_cast<double>(result.loss), loss, tolerance * std::max(std::abs(loss), std::sqrt(squares)));
    EXPECT_GT(squares, 0);
    EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(squares));
  }
}

TEST(Loss, EqualsTrlInDouble) { ExpectTrl<double>(1e-6); }

TEST(Loss, EqualsTrlInFloat) { ExpectTrl<float>(1e-5); }

TEST(Loss, MetricsEqualTrl) {
  size_t compared = 0;  // TRL computes these in float32
  for (const json& c : Golden().at("cases")) {
    if (!c.contains("metrics")) continue;
    SCOPED_TRACE(c.at("loss_type").get<std::string>() + " " + c.at("level").get<std::string>());
    const LossStatistics s = RunCase<double>(c).statistics;
    const auto ratios = static_cast<double>(s.ratios);
    const json& metrics = c.at("metrics");
    if (metrics.contains("kl")) {
      EXPECT_NEAR(s.kl_sum / static_cast<double>(s.tokens), metrics.at("kl").get<double>(), 1e-7);
    }
    if (metrics.contains("cispo_clip_ratio")) {
      EXPECT_NEAR(static_cast<double>(s.high_clipped) / ratios, metrics.at("cispo_clip_ratio").get<double>(), 1e-7);
    } else {
      EXPECT_NEAR(static_cast<double>(s.low_clipped) / ratios, metrics.at("clip_ratio/low_mean").get<double>(), 1e-7);
      EXPECT_NEAR(static_cast<double>(s.high_clipped) / ratios, metrics.at("clip_ratio/high_mean").get<double>(), 1e-7);
      EXPECT_NEAR(s.low_fraction_min, metrics.at("clip_ratio/low_min").get<double>(), 1e-7);
      EXPECT_NEAR(s.high_fraction_max, metrics.at("clip_ratio/high_max").get<double>(), 1e-7);
    }
    ++compared;
  }
  EXPECT_GT(compared, 200u);
}

// Everything random about one sequence.
struct RandomSequence {
  explicit RandomSequence(uint64_t seed, size_t size = 6) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    for (size_t t = 0; t < size; ++t) {
      policy.push_back(-std::abs(normal(engine)) - 0.1);
      old.push_back(policy.back() + 0.5 * normal(engine));
      reference.push_back(policy.back() + 0.5 * normal(engine));
    }
    advantage = normal(engine);
  }
  SequenceInputs<double> inputs() const { return {policy, old, reference, {}, advantage, {}}; }
  std::vector<double> policy, old, reference;
  double advantage = 0;
};

std::vector<LossOptions> EveryLoss() {
  std::vector<LossOptions> all;
  for (LossType type : {LossType::kGrpo, LossType::kCispo}) {
    for (RatioLevel level : {RatioLevel::kToken, RatioLevel::kSequence}) {
      for (KlEstimator kl : {KlEstimator::kK1, KlEstimator::kK2, KlEstimator::kK3}) {
        for (bool correction : {false, true}) {
          LossOptions options;
          options.type = type;
          options.level = level;
          options.epsilon_high = type == LossType::kCispo ? 2.0 : 0.28;
          options.kl_estimator = kl;
          options.kl_ratio_correction = correction;
          options.beta = 0.1;
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

TEST(Loss, GradientIsTheDerivativeOfTheLoss) {
  for (LossOptions options : EveryLoss()) {
    // cispo's ratio is a constant in its gradient, which a difference quotient of the loss does not see.
    if (options.type == LossType::kCispo) continue;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      RandomSequence sequence(seed);
      LossStatistics statistics;
      std::vector<double> gradient(sequence.policy.size()), unused(sequence.policy.size());
      SequenceLoss<double>(options, sequence.inputs(), 0.7, gradient, statistics);
      for (size_t t = 0; t < gradient.size(); ++t) {
        const double here = sequence.policy[t], step = 1e-6;
        sequence.policy[t] = here + step;
        const double above = SequenceLoss<double>(options, sequence.inputs(), 0.7, unused, statistics);
        sequence.policy[t] = here - step;
        const double below = SequenceLoss<double>(options, sequence.inputs(), 0.7, unused, statistics);
        sequence.policy[t] = here;
        EXPECT_NEAR((above - below) / (2 * step), gradient[t], 1e-6);
      }
    }
  }
}

TEST(Loss, OnPolicyWithoutKlItsValueIsMinusTheAdvantageAndItsGradientIsNotZero) {
  RandomSequence sequence(3);
  sequence.old = sequence.policy;
  LossOptions options;
  options.beta = 0;
  std::vector<double> gradient(sequence.policy.size());
  LossStatistics statistics;
  const auto size = static_cast<double>(gradient.size());
  SequenceInputs<double> in = sequence.inputs();
  in.reference_logprobs = {};
  EXPECT_NEAR(SequenceLoss<double>(options, in, 1 / size, gradient, statistics), -sequence.advantage, 1e-12);
  for (double slope : gradient) EXPECT_NEAR(slope, -sequence.advantage / size, 1e-12);
  EXPECT_EQ(statistics.low_clipped + statistics.high_clipped, 0u);
}

TEST(Loss, EstimatorsOfKlAreNonNegativeAndAgreeInTheMean) {
  // p and q over three tokens: means under p of the estimators are the divergence (k1, k3) or close to it (k2).
  const std::vector<double> p = {0.5, 0.3, 0.2}, q = {0.45, 0.33, 0.22};
  double divergence = 0, k1 = 0, k2 = 0, k3 = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double a = std::log(p[i]), b = std::log(q[i]);
    divergence += p[i] * (a - b);
    EXPECT_GE(internal::KlEstimate(KlEstimator::kK2, a, b).value, 0);
    EXPECT_GE(internal::KlEstimate(KlEstimator::kK3, a, b).value, 0);
    k1 += p[i] * internal::KlEstimate(KlEstimator::kK1, a, b).value;
    k2 += p[i] * internal::KlEstimate(KlEstimator::kK2, a, b).value;
    k3 += p[i] * internal::KlEstimate(KlEstimator::kK3, a, b).value;
  }
  EXPECT_NEAR(k1, divergence, 1e-12);
  EXPECT_NEAR(k3, divergence, 1e-12);
  EXPECT_NEAR(k2, divergence, 0.05 * divergence);
  // Where the policies are nearly equal, k3 in float must not be lost to cancellation.
  EXPECT_NEAR(internal::KlEstimate(KlEstimator::kK3, -1.0f, -1.0f - 1e-3f).value, 0.5e-6f, 0.2e-6f);
  EXPECT_EQ(internal::KlEstimate(KlEstimator::kK3, -1.0f, -1.0f).value, 0.0f);
}

// Over all tokens that may be drawn, the estimates' mean is the gradient of the entropy by the logits, whatever policy
// draws them. Its size is TRL's: the mean over tokens, whatever the loss divides by (here 8 of 512 tokens: dr_grpo
// divides by 512).
class EntropyBonus : public ::testing::TestWithParam<LossType> {};
INSTANTIATE_TEST_SUITE_P(OfEachLoss, EntropyBonus,
                         ::testing::Values(LossType::kGrpo, LossType::kBnpo, LossType::kDrGrpo, LossType::kDapo,
                                           LossType::kCispo));
TEST_P(EntropyBonus, ClimbsTheEntropyAtTrlsSize) {
  const std::vector<double> logits = {0.3, -1.2, 0.9, 2.0}, drawn_from = {0.1, 0.4, 0.3, 0.2};
  const auto entropy_of = [](const std::vector<double>& z) {
    double sum = 0, entropy = 0;
    for (const double logit : z) sum += std::exp(logit);
    for (const double logit : z) entropy -= std::exp(logit) / sum * (logit - std::log(sum));
    return entropy;
  };
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  const double entropy = entropy_of(logits);
  LossOptions options;
  options.type = GetParam();
  options.beta = 0;
  const WindowSizes sizes = {1, 8, 1, 8, 512};
  const double weight = SequenceWeight(options.type, 1, sizes);
  std::vector<double> gradient(logits.size());  // by the logits
  double mean_loss = 0;
  for (size_t x = 0; x < logits.size(); ++x) {
    const double logprob = logits[x] - std::log(sum), old = std::log(drawn_from[x]);
    double slope = 0;
    LossStatistics statistics;
    SequenceInputs<double> in;
    in.logprobs = std::span(&logprob, 1);
    in.old_logprobs = std::span(&old, 1);
    in.entropies = std::span(&entropy, 1);
    in.entropy_weight = 0.2;
    mean_loss += drawn_from[x] * SequenceLoss<double>(options, in, weight, std::span(&slope, 1), statistics);
    for (size_t j = 0; j < logits.size(); ++j)
      gradient[j] += drawn_from[x] * slope * ((x == j ? 1 : 0) - std::exp(logits[j]) / sum);
  }
  EXPECT_NEAR(mean_loss, -0.2 * entropy, 1e-12);
  for (size_t j = 0; j < logits.size(); ++j) {
    std::vector<double> above = logits, below = logits;
    above[j] += 1e-5;
    below[j] -= 1e-5;
    EXPECT_NEAR(gradient[j], -0.2 * (entropy_of(above) - entropy_of(below)) / 2e-5, 1e-8) << j;
  }
}

TEST(Loss, SlopeOfKlIsBoundedByDefault) {
  // The policy all but excludes the second token, which the reference finds likely: ref / pi is 3.3e7.
  RandomSequence sequence(5);
  sequence.policy[1] = -18;
  sequence.reference[1] = -0.7;
  const std::map<KlEstimator, double> slopes = {
      {KlEstimator::kK1, 1}, {KlEstimator::kK2, -3}, {KlEstimator::kK3, 1 - std::exp(3)}};
  for (const auto& [estimator, bounded] : slopes) {
    LossOptions options;
    options.kl_estimator = estimator;
    options.beta = 1;
    auto slope = [&] {
      std::vector<double> with(sequence.policy.size()), without(sequence.policy.size());
      LossStatistics statistics;
      SequenceInputs<double> in = sequence.inputs();
      SequenceLoss<double>(options, in, 1.0, with, statistics);
      in.reference_logprobs = {};
      SequenceLoss<double>(options, in, 1.0, without, statistics);
      return with[1] - without[1];
    };
    EXPECT_NEAR(slope(), bounded, 1e-9);
    options.kl_clamp = std::numeric_limits<double>::infinity();
    EXPECT_NEAR(slope(), internal::KlEstimate(estimator, -18.0, -0.7).derivative, 1e-3);
  }
  LossOptions options;
  EXPECT_NEAR(internal::KlTerm(options, -18.0, -0.7).value, std::exp(3) - 4 + (std::exp(3) - 1) * 14.3, 1e-9);
  EXPECT_NEAR(internal::KlTerm(options, -2000.0, -0.7).derivative, 1 - std::exp(3),
              1e-9);                                     // the ratio itself overflows
  for (const double logprob : {-3.0, -2.9, 0.0, 4.0}) {  // within the clamp: the estimate
    EXPECT_EQ(internal::KlTerm(options, logprob, 0.0).value,
              internal::KlEstimate(options.kl_estimator, logprob, 0.0).value);
  }
  EXPECT_TRUE(std::isnan(internal::KlTerm(options, std::nan(""), -0.7).value));
}

TEST(Loss, DeltaBoundsNegativeAdvantagesAlone) {
  LossOptions options;
  options.delta = 2;
  EXPECT_DOUBLE_EQ(internal::ClippedTerm(options, 10.0, -1.0).value, 2);
  EXPECT_DOUBLE_EQ(internal::ClippedTerm(options, 10.0, -1.0).derivative, 0);
  EXPECT_DOUBLE_EQ(internal::ClippedTerm(options, 10.0, 1.0).value, -1.2);
  options.delta = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(internal::ClippedTerm(options, 10.0, -1.0).value, 10);
  EXPECT_DOUBLE_EQ(internal::ClippedTerm(options, 10.0, -1.0).derivative, 10);
}

TEST(Loss, NonFiniteInputsAreSeenInTheLoss) {
  for (const LossOptions& options : EveryLoss()) {
    for (int where = 0; where < 4; ++where) {
      RandomSequence sequence(1);
      const double nan = std::numeric_limits<double>::quiet_NaN();
      if (where == 0) sequence.policy[2] = nan;
      if (where == 1) sequence.old[2] = nan;
      if (where == 2) sequence.reference[2] = nan;
      if (where == 3) sequence.advantage = nan;
      std::vector<double> gradient(sequence.policy.size());
      LossStatistics statistics;
      EXPECT_FALSE(std::isfinite(SequenceLoss<double>(options, sequence.inputs(), 1.0, gradient, statistics))) << where;
    }
  }
}

TEST(Loss, WeightsOfAWindowAreThoseOfTheFormulas) {
  const WindowSizes sizes = {8, 40, 64, 320, 24};
  EXPECT_DOUBLE_EQ(SequenceWeight(LossType::kGrpo, 5, sizes), 1.0 / (8 * 5));
  EXPECT_DOUBLE_EQ(SequenceWeight(LossType::kBnpo, 5, sizes), 1.0 / 40);
  EXPECT_DOUBLE_EQ(SequenceWeight(LossType::kDrGrpo, 5, sizes), 1.0 / (8 * 24));
  EXPECT_DOUBLE_EQ(SequenceWeight(LossType::kDapo, 5, sizes), 1.0 / (320.0 * 8 / 64));
  EXPECT_DOUBLE_EQ(SequenceWeight(LossType::kCispo, 5, sizes), 1.0 / (320.0 * 8 / 64));
  // A window of nothing but masked sequences must not divide by zero.
  EXPECT_TRUE(std::isfinite(SequenceWeight(LossType::kBnpo, 0, {8, 0, 8, 0, 24})));
}

}  // namespace
}  // namespace kgrpo::grpo
