// loop/evaluate_policy.h: policies compared on held-out problems.
#include "loop/evaluate_policy.h"

#include "fakes.h"
#include "loop/compare_policies.h"
#include "store/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

namespace kgrpo {
namespace {

using ::testing::HasSubstr;

PolicyReport Evaluate(const std::string& policy, uint64_t episodes = 6) {
  const PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  return EvaluatePolicy(config, parts, ParsePolicyChoice(policy), {episodes});
}

// A folder that is no run's: a model's, as far as a choice looks.
std::string ModelFolder() {
  const std::filesystem::path folder = fakes::Folder("policy_choice");
  std::filesystem::create_directories(folder);
  return folder.string();
}

TEST(ParsePolicyChoiceTest, ReadsTheThreeForms) {
  EXPECT_EQ(ParsePolicyChoice("uniform").suggester.kind, Suggester::Kind::kUniform);
  const PolicyChoice fixed = ParsePolicyChoice("fixed:tile, unroll");
  EXPECT_EQ(fixed.suggester.sequence, (std::vector<std::string>{"tile", "unroll"}));
  EXPECT_FALSE(fixed.needs_policy());
  const std::string model = ModelFolder();
  EXPECT_EQ(ParsePolicyChoice(model).model, model);
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
  const PolicyReport before = EvaluatePolicy(config, parts, untrained, {10});
  const PolicyReport after = EvaluatePolicy(config, parts, ParsePolicyChoice(config.output_dir + "/final"), {10});
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
TEST(EvaluatePolicyTest, APartThatOnlyFailsEndsIt) {
  for (const auto& [part, episodes] : {std::pair<std::string, uint64_t>{"coder", 1},
                                       {"coder", 100},
                                       {"evaluator", 1},
                                       {"evaluator", 100},
                                       {"reward", 1},
                                       {"reward", 100}}) {
    fakes::Reset();
    fakes::knobs().coder_fails_every = part == "coder" ? 1 : 0;
    fakes::knobs().evaluator_fails_every = part == "evaluator" ? 1 : 0;
    fakes::knobs().reward_fails_every = part == "reward" ? 1 : 0;
    const PipelineConfig config = fakes::Config("");
    PipelineParts parts = fakes::Parts(config);
    try {
      EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), {episodes});
      ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), KGRPO_ERROR_UNAVAILABLE);
      EXPECT_THAT(error.what(), HasSubstr("the " + part + "'s first "));
      EXPECT_THAT(error.what(), HasSubstr("answers all failed; the commonest, "));
    }
    if (episodes > 1 && part == "coder") {
      EXPECT_LT(fakes::knobs().coder_calls, 100);
    }
  }
  fakes::Reset();
}

TEST(EvaluatePolicyTest, EpisodesEndWhereTheEvaluatorFails) {
  fakes::Reset();
  fakes::knobs().evaluator_fails_every = 5;
  const PolicyReport report = Evaluate("uniform", 20);
  const auto dropped = std::ranges::count_if(report.all_episodes, [](const EpisodeFigures& episode) {
    return episode.dropped.find(": the evaluator failed: no server answers") != std::string::npos;
  });
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(report.metrics.at("evaluator/dropped_trajectories"), static_cast<double>(dropped));
  EXPECT_GT(report.metrics.at("evaluator/error_rate"), 0);
  EXPECT_LT(report.metrics.at("evaluator/error_rate"), 0.5);
  fakes::Reset();
}

TEST(EvaluatePolicyTest, RefusesWhatItCannotDo) {
  PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  parts.policy.reset();
  EXPECT_NO_THROW(EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), {1}));  // needs none
  EXPECT_THROW(EvaluatePolicy(config, parts, ParsePolicyChoice(ModelFolder()), {1}), Error);
  EXPECT_THROW(EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), {0}), Error);
  config.heldout_problems.clear();
  EXPECT_THROW(EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), {1}), Error);
}

// The mean over all subsets of k episodes of the best among them, counted out.
double BestOfCountedOut(const std::vector<double>& speedups, size_t k) {
  double sum = 0;
  size_t count = 0;
  for (uint32_t subset = 0; subset < 1U << speedups.size(); ++subset) {
    if (static_cast<size_t>(__builtin_popcount(subset)) != k) continue;
    double best = 0;
    for (size_t i = 0; i < speedups.size(); ++i) {
      if ((subset >> i & 1) != 0) best = std::max(best, std::log(speedups[i]));
    }
    sum += best;
    ++count;
  }
  return sum / static_cast<double>(count);
}

TEST(EvaluatePolicyTest, BestOfKIsTheMeanOverAllChoicesOfKEpisodes) {
  fakes::Reset();
  const PolicyReport report = Evaluate("uniform", 8);
  std::map<std::string, std::vector<double>> by_problem;
  for (const EpisodeFigures& episode : report.all_episodes) by_problem[episode.problem].push_back(episode.best_speedup);
  ASSERT_EQ(report.best_of.size(), 4U);  // 1, 2, 4, 8
  for (const auto& [k, speedup] : report.best_of) {
    double sum = 0;
    for (const auto& [problem, speedups] : by_problem) sum += BestOfCountedOut(speedups, k);
    EXPECT_NEAR(std::log(speedup), sum / static_cast<double>(by_problem.size()), 1e-12) << k;
  }
  EXPECT_NEAR(report.best_of[0].second, report.best_speedup.value, 1e-12);
}

TEST(EvaluatePolicyTest, RepeatsAreOtherEpisodesAndAllOfThemCount) {
  fakes::Reset();
  const PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  const PolicyReport twice = EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), {3, 2});
  const PolicyReport once = EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), {3});
  ASSERT_EQ(twice.repeats.size(), 2U);
  EXPECT_EQ(twice.repeats[0], once.repeats[0]);
  EXPECT_NE(twice.repeats[1], once.repeats[0]);
  EXPECT_EQ(twice.episodes, 2 * once.episodes);
  EXPECT_EQ(twice.all_episodes.back().repeat, 1U);
  PipelineConfig next = config;
  ++next.seed;
  EXPECT_EQ(EvaluatePolicy(next, parts, ParsePolicyChoice("uniform"), {3}).repeats[0], twice.repeats[1]);
}

TEST(EvaluatePolicyTest, KeepsTheKernelsThatAThoroughEvaluationConfirms) {
  fakes::Reset();
  const PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  const std::filesystem::path folder = fakes::Folder("kept_kernels");
  const PolicyReport report = EvaluatePolicy(config, parts, ParsePolicyChoice("uniform"), {6, 1, folder});
  ASSERT_FALSE(report.kernels.empty());
  for (const auto& [problem, speedup] : report.kernels) {
    EXPECT_GT(speedup, 1);
    EXPECT_TRUE(std::filesystem::exists(folder / problem / "best.cu")) << problem;
    EXPECT_TRUE(std::filesystem::exists(folder / problem / "evidence.json")) << problem;
  }
}

PolicyReport Report(const std::string& name, const std::vector<double>& rewards) {
  PolicyReport report;
  report.policy = name;
  for (size_t i = 0; i < rewards.size(); ++i) {
    EpisodeFigures episode;
    episode.problem = i % 2 == 0 ? "one" : "two";
    episode.episode = i / 2;
    episode.reward = rewards[i];
    episode.best_speedup = std::exp(rewards[i]);
    report.all_episodes.push_back(episode);
  }
  return report;
}

TEST(ComparePoliciesTest, PairsEpisodesSoThatASmallDifferenceIsSeen) {
  std::vector<double> first, second, third;
  for (int i = 0; i < 24; ++i) {
    const double shared = (i * 7 % 24) * 0.5;  // by far the largest part
    first.push_back(shared);
    second.push_back(shared + 0.1 + 0.001 * (i % 5));
    third.push_back(shared + (i % 4 < 2 ? 0.2 : -0.2));
  }
  std::vector<PolicyReport> reports = {Report("a", first), Report("b", second), Report("c", third)};
  const std::vector<PolicyDifference> differences = ComparePolicies(reports);
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[0].episodes, 24U);
  EXPECT_NEAR(differences[0].reward.value, 0.102, 1e-3);
  EXPECT_GT(differences[0].reward.low, 0.1);
  EXPECT_NEAR(std::log(differences[0].speedup.value), differences[0].reward.value, 1e-12);
  EXPECT_LT(differences[1].reward.low, 0);
  EXPECT_GT(differences[1].reward.high, 0);
  std::ostringstream out;
  Console console(out, false);
  ShowPolicies(console, reports);
  EXPECT_THAT(out.str(), HasSubstr("b beats a in reward by 0.102 [0.10"));
  EXPECT_THAT(out.str(), HasSubstr("no difference seen in reward between c and a"));
  // A dropped episode has no pair.
  reports[1].all_episodes[0].dropped = "the coder failed";
  EXPECT_EQ(ComparePolicies(reports)[0].episodes, 23U);
}

}  // namespace
}  // namespace kgrpo
