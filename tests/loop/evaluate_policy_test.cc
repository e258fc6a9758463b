// loop/evaluate_policy.h: policies compared on held-out problems.
#include "loop/evaluate_policy.h"

#include "fakes.h"
#include "store/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <sstream>

namespace kgrpo {
namespace {

using ::testing::HasSubstr;

PolicyReport Evaluate(const std::string& policy, uint64_t episodes = 6) {
  const PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  return EvaluatePolicy(config, parts, ParsePolicyChoice(policy), episodes);
}

TEST(ParsePolicyChoiceTest, ReadsTheThreeForms) {
  EXPECT_EQ(ParsePolicyChoice("uniform").suggester.kind, Suggester::Kind::kUniform);
  const PolicyChoice fixed = ParsePolicyChoice("fixed:tile, unroll");
  EXPECT_EQ(fixed.suggester.sequence, (std::vector<std::string>{"tile", "unroll"}));
  EXPECT_FALSE(fixed.needs_policy());
  EXPECT_EQ(ParsePolicyChoice("/tmp").model, "/tmp");
  EXPECT_THROW(ParsePolicyChoice("fixed:"), Error);
  EXPECT_THROW(ParsePolicyChoice("fixed:tile,"), Error);
  EXPECT_THROW(ParsePolicyChoice("/no/such/folder"), Error);
}

TEST(EvaluatePolicyTest, AFixedTechniqueIsMeasuredExactly) {
  fakes::Reset();
  // "overflow" never compiles, and is there already from the second round on: -1, 0, 0.
  const PolicyReport report = Evaluate("fixed:overflow");
  EXPECT_DOUBLE_EQ(report.reward.value, -1.0 / 3);
  EXPECT_DOUBLE_EQ(report.reward.low, -1.0 / 3);
  EXPECT_DOUBLE_EQ(report.best_speedup.value, 1);
  EXPECT_EQ(report.episodes, 18u);
  EXPECT_DOUBLE_EQ(report.metrics.at("coder/not_applicable_rate"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(report.metrics.at("kernel/failed_rate"), 1.0 / 3);
  for (const auto& [p, share] : report.fast_p) EXPECT_EQ(share, 0) << p;
}

TEST(EvaluatePolicyTest, FixedSequencesGoThroughTheRounds) {
  fakes::Reset();
  const PolicyReport report = Evaluate("fixed:tile,pad", 1);
  EXPECT_EQ(report.problems[0].samples, (std::vector<std::string>{"tile", "pad", "pad"}));
}

TEST(EvaluatePolicyTest, UniformDoesNotRepeatItself) {
  fakes::Reset();
  const PolicyReport report = Evaluate("uniform", 20);
  EXPECT_EQ(report.metrics.at("coder/not_applicable_rate"), 0);
  EXPECT_LT(report.reward.low, report.reward.value);
  EXPECT_GT(report.reward.high, report.reward.value);
  EXPECT_EQ(report.metrics.at("policy/distinct_suggestions"), 6);
  EXPECT_EQ(report.token_entropy, 0);
  const auto without_times = [](const PolicyReport& of) {
    nlohmann::ordered_json json = of.ToJson();
    for (const char* name : {"time/evaluate", "time/implement"}) json["metrics"].erase(name);
    return json;
  };
  EXPECT_EQ(without_times(Evaluate("uniform", 20)), without_times(report));
}

TEST(EvaluatePolicyTest, ATrainedPolicyBeatsTheUntrained) {
  fakes::Reset();
  PipelineConfig config = fakes::Config(fakes::Folder("to_evaluate"), 0, 40);
  config.evaluation.every = 0;
  fakes::RunIn(config);
  PipelineParts parts = fakes::Parts(config);
  PolicyChoice untrained;
  untrained.label = "untrained";
  const PolicyReport before = EvaluatePolicy(config, parts, untrained, 10);
  const PolicyReport after = EvaluatePolicy(config, parts, ParsePolicyChoice(config.output_dir + "/final"), 10);
  EXPECT_GT(after.reward.low, before.reward.high);
  EXPECT_LT(after.token_entropy, before.token_entropy);
  EXPECT_NEAR(before.token_entropy, std::log(6) / 2, 1e-5);  // a technique of six, and the certain end
  std::ostringstream out;
  Console console(out, false);
  after.Show(console);
  EXPECT_THAT(out.str(), HasSubstr("MODELLED, no device ran: table"));
  EXPECT_THAT(out.str(), HasSubstr("matmul_c"));
}

// It would pay for nothing to its end, and have no figure to tell.
TEST(EvaluatePolicyTest, ACoderThatIsOfNoUseEndsIt) {
  for (const uint64_t episodes : {uint64_t{1}, uint64_t{100}}) {
    fakes::Reset();
    fakes::knobs().coder_fails_every = 1;
    const PipelineConfig config = fakes::Config("");
    PipelineParts parts = fakes::Parts(config);
    try {
      EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), episodes);
      ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), KGRPO_ERROR_UNAVAILABLE);
      EXPECT_THAT(error.what(), HasSubstr("answers were all useless for a fault of its own; the commonest, "));
    }
    if (episodes > 1) {
      EXPECT_LT(fakes::knobs().coder_calls, 100);
    }
  }
  fakes::Reset();
}

TEST(EvaluatePolicyTest, RefusesWhatItCannotDo) {
  PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  parts.policy.reset();
  EXPECT_NO_THROW(EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), 1));  // needs none
  EXPECT_THROW(EvaluatePolicy(config, parts, ParsePolicyChoice("/tmp"), 1), Error);
  EXPECT_THROW(EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), 0), Error);
  config.heldout_problems.clear();
  EXPECT_THROW(EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), 1), Error);
}

}  // namespace
}  // namespace kgrpo
