// The reward of every outcome of a round under reward_speedup.
#include "reward_speedup/speedup_reward.h"

#include "test.h"

namespace kgrpo::reward {
namespace {

SpeedupRewardOptions Options(const json& changes = json::object()) {
  json options = json::object();
  const json properties = json::parse(SpeedupRewardSchema()).at("properties");
  for (const auto& [name, property] : properties.items()) options[name] = property.at("default");
  for (const auto& [name, value] : changes.items()) {
    EXPECT_TRUE(options.contains(name)) << name;
    options[name] = value;
  }
  return ReadSpeedupRewardOptions(options.dump());
}

kgrpo_evaluation Kernel(bool compiled, bool correct, double seconds) {
  kgrpo_evaluation evaluation = {};
  evaluation.struct_size = sizeof(evaluation);
  evaluation.compiled = compiled;
  evaluation.correct = correct;
  evaluation.seconds = seconds;
  evaluation.speedup = correct ? 1e-3 / seconds : 0;
  return evaluation;
}

// A round to be scored: the reference takes 1 ms, the current kernel 0.5 ms.
struct Round {
  kgrpo_evaluation baseline = Kernel(true, true, 1e-3);
  kgrpo_evaluation current = Kernel(true, true, 0.5e-3);
  kgrpo_evaluation candidate = Kernel(true, true, 0.25e-3);
  kgrpo_coder_answer answer = {};
  bool has_candidate = true;
  bool unchanged = false;

  kgrpo_reward_request request() {
    kgrpo_reward_request made = {};
    made.struct_size = sizeof(made);
    made.baseline = &baseline;
    made.current = &current;
    made.candidate = has_candidate ? &candidate : nullptr;
    made.answer = &answer;
    made.unchanged = unchanged;
    made.rounds = 4;
    return made;
  }
  double Score(const json& changes = json::object()) {
    const RewardParts parts = reward::Score(Options(changes), request());
    EXPECT_DOUBLE_EQ(parts.outcome + parts.correct + parts.speedup, parts.total());
    return parts.total();
  }
  double Idle(const json& changes = json::object()) { return IdleScore(Options(changes), request()); }
};

std::string ErrorOf(const std::function<void()>& body) { return test::MessageOf(body, KGRPO_ERROR_INVALID); }

TEST(RewardSpeedup, PaysTheOriginalsTable) {
  Round round;
  round.candidate = Kernel(false, false, 0);
  EXPECT_EQ(round.Score(), -1.0);
  round.candidate = Kernel(true, false, 0);
  EXPECT_EQ(round.Score(), -0.5);
  round.candidate = Kernel(true, true, 1e-3);
  EXPECT_DOUBLE_EQ(round.Score(), 0.3 + 1);
  round.candidate = Kernel(true, true, 0.25e-3);
  EXPECT_DOUBLE_EQ(round.Score(), 0.3 + 4);
  round.candidate = Kernel(true, true, 4e-3);
  EXPECT_DOUBLE_EQ(round.Score(), 0.3 + 0.25);
}

TEST(RewardSpeedup, PaysTheCodersOutcomes) {
  Round round;
  round.has_candidate = false;
  round.answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
  EXPECT_EQ(round.Score(), 0.0);
  round.answer.outcome = KGRPO_CODER_UNCLEAR;
  EXPECT_EQ(round.Score(), -0.5);
  for (uint32_t outcome : {KGRPO_CODER_REFUSED, KGRPO_CODER_TRUNCATED, KGRPO_CODER_NO_CODE, KGRPO_CODER_FAILED}) {
    round.answer.outcome = outcome;
    EXPECT_EQ(round.Score(), -0.5);
  }
  round.answer.outcome = KGRPO_CODER_NO_KERNEL;
  EXPECT_EQ(round.Score(), -1.0);
  EXPECT_EQ(round.Score({{"no_kernel", -0.2}}), -0.2);
}

TEST(RewardSpeedup, EveryConstantIsAnOption) {
  Round round;
  EXPECT_DOUBLE_EQ(round.Score({{"correct", 1}, {"speedup_weight", 0.5}}), 1 + 0.5 * 4);
  EXPECT_DOUBLE_EQ(round.Score({{"speedup_cap", 3}}), 0.3 + 3);
  EXPECT_DOUBLE_EQ(round.Score({{"transform", "log"}}), 0.3 + std::log2(5.0));
  EXPECT_DOUBLE_EQ(round.Score({{"transform", "log"}, {"speedup_cap", 3}}), 0.3 + 2);
  round.candidate = Kernel(false, false, 0);
  EXPECT_EQ(round.Score({{"not_compiled", -3}}), -3);
  round.candidate = Kernel(true, false, 0);
  EXPECT_EQ(round.Score({{"wrong", -2}}), -2);
}

TEST(RewardSpeedup, TheLogTransformAgreesAtOneAndNeverPunishesSlownessMoreThanError) {
  Round round;
  round.candidate = Kernel(true, true, 1e-3);
  EXPECT_DOUBLE_EQ(round.Score({{"transform", "log"}}), round.Score());
  round.candidate = Kernel(true, true, 1e3);
  EXPECT_GT(round.Score({{"transform", "log"}}), 0.3 - 1e-12);
}

TEST(RewardSpeedup, AnUnchangedKernelIsNotPaidAgain) {
  Round round;
  round.unchanged = true;
  EXPECT_EQ(round.Score(), 0.0);
  EXPECT_EQ(round.Score({{"unchanged", 0.1}}), 0.1);
  round.has_candidate = false;  // the host need not judge it again
  EXPECT_EQ(round.Score({{"unchanged", 0.1}}), 0.1);
  round.current = Kernel(true, false, 0);
  EXPECT_EQ(round.Score(), -0.5) << "staying wrong is no way out";
  round.current = Kernel(false, false, 0);
  EXPECT_EQ(round.Score(), -1.0);
  EXPECT_EQ(round.Score({{"unchanged", -2}}), -2);
}

TEST(RewardSpeedup, IdleIsTheCurrentKernelPaidAsNewWork) {
  Round round;
  EXPECT_DOUBLE_EQ(round.Idle(), 0.3 + 2);
  EXPECT_DOUBLE_EQ(round.Idle({{"speedup_cap", 1.5}}), 0.3 + 1.5);
  round.current = Kernel(true, false, 0);
  EXPECT_EQ(round.Idle(), -0.5);
  round.current = Kernel(false, false, 0);
  EXPECT_EQ(round.Idle(), -1.0);
  round.candidate = round.current;  // ignored
  round.answer.outcome = KGRPO_CODER_UNCLEAR;
  round.current = round.baseline;
  EXPECT_DOUBLE_EQ(round.Idle(), 1.3);
}

TEST(RewardSpeedup, SpeedupsThatAreNoneAreRefused) {
  for (double seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    Round round;
    round.candidate = Kernel(true, true, seconds);
    EXPECT_THAT(ErrorOf([&] { round.Score(); }), HasSubstr("it must be above 0"));
  }
  Round round;
  round.has_candidate = false;
  EXPECT_EQ(ErrorOf([&] { round.Score(); }), "reward_speedup: the request has no evaluation of the candidate");
}

TEST(RewardSpeedup, EveryOptionSaysWhatItIs) {
  const json schema = json::parse(SpeedupRewardSchema());
  EXPECT_FALSE(schema.at("additionalProperties").get<bool>());
  for (const auto& [name, property] : schema.at("properties").items()) {
    for (const char* key : {"title", "default", "description"})
      EXPECT_TRUE(property.contains(key)) << name << ": " << key;
  }
}

}  // namespace
}  // namespace kgrpo::reward
