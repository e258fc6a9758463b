// eval/evaluate_policy.h and compare/evaluation.h: policies compared on held-out problems.
#include "eval/evaluate_policy.h"

#include "compare/compare.h"
#include "compare/evaluation.h"
#include "fakes.h"
#include "store/database.h"
#include "store/run_folder.h"
#include "test.h"

namespace kgrpo {
namespace {

struct Played {
  RunMeasures run;
  EvaluationFigures figures;
};

Played Play(const PipelineConfig& config, PipelineParts& parts, const PolicyChoice& choice, const EpisodePlan& plan) {
  const std::string folder = fakes::Folder("evaluated");
  std::filesystem::remove_all(folder);
  EvaluatePolicy(config, parts, choice, plan, folder);
  Played played{ReadMeasures(folder, ""), {}};
  played.figures = ReadEvaluation(played.run);
  return played;
}

EvaluationFigures Evaluate(const std::string& policy, uint64_t episodes = 6) {
  const PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  return Play(config, parts, ParsePolicyChoice(policy), {episodes}).figures;
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
  const EvaluationFigures report = Evaluate("fixed:overflow");
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
  const EvaluationFigures report = Evaluate("fixed:tile,pad", 1);
  EXPECT_EQ(report.problems[0].suggested.count("tile"), 1U);
  EXPECT_EQ(report.problems[0].suggested.count("pad"), 2U);
  EXPECT_EQ(report.problems[0].suggested.favourite(), "pad");
}

TEST(EvaluatePolicyTest, UniformDoesNotRepeatItself) {
  fakes::Reset();
  const EvaluationFigures report = Evaluate("uniform", 20);
  EXPECT_EQ(report.metrics.at("coder/not_applicable_rate"), 0);
  EXPECT_LT(report.reward.low, report.reward.value);
  EXPECT_GT(report.reward.high, report.reward.value);
  EXPECT_EQ(report.metrics.at("policy/distinct_suggestions"), 6);
  EXPECT_FALSE(report.metrics.contains("policy/token_entropy"));
  const auto without_times = [](const EvaluationFigures& of) {
    nlohmann::ordered_json json = FiguresToJson(of, {});
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
  const Played before = Play(config, parts, untrained, {10});
  const Played after = Play(config, parts, ParsePolicyChoice(config.output_dir + "/final"), {10});
  EXPECT_GT(after.figures.reward.low, before.figures.reward.high);
  const auto entropy = [](const Played& of) { return of.figures.metrics.at("policy/token_entropy"); };
  EXPECT_LT(entropy(after), entropy(before));
  EXPECT_NEAR(entropy(before), std::log(6) / 2, 1e-5);  // a technique of six, and the certain end
  EXPECT_EQ(after.run.times, "MODELLED, no device ran: table");
  EXPECT_TRUE(after.run.finished);
  EXPECT_DOUBLE_EQ(after.run.values.at("heldout_reward"), after.figures.reward.value);
  // The same engine as that of runs, by paired episodes.
  const std::vector<RunGroup> groups = GroupRuns({before.run, after.run});
  ASSERT_EQ(groups.size(), 2U) << "the policy is part of the configuration";
  const std::vector<Comparison> comparisons = Compare(groups);
  ASSERT_FALSE(comparisons.empty());
  EXPECT_EQ(comparisons[0].basis, Basis::kEpisodes);
  EXPECT_EQ(comparisons[0].episodes, 30U);
  EXPECT_NEAR(comparisons[0].effect, after.figures.reward.value - before.figures.reward.value, 1e-12);
  EXPECT_THAT(InWords(comparisons[0], groups), HasSubstr("over 30 pairs of episodes: "));
  // A record of another kind is not resumed.
  EXPECT_THROW(RunFolder::Open(after.run.folder), Error);
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
      Play(config, parts, ParsePolicyChoice("uniform"), {episodes});
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
  const PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  const Played played = Play(config, parts, ParsePolicyChoice("uniform"), {20});
  const EvaluationFigures& report = played.figures;
  RunDatabase database = RunDatabase::ToRead(played.run.database());
  const auto dropped =
      std::ranges::count_if(database.ReadStep(Purpose::kEvaluation, 1), [](const TrajectoryRecord& trajectory) {
        return trajectory.dropped.find(": the evaluator failed: no server answers") != std::string::npos;
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
  EXPECT_NO_THROW(Play(config, parts, ParsePolicyChoice("uniform"), {1}));  // needs none
  EXPECT_THROW(Play(config, parts, ParsePolicyChoice(ModelFolder()), {1}), Error);
  EXPECT_THROW(Play(config, parts, ParsePolicyChoice("uniform"), {0}), Error);
  config.heldout_problems.clear();
  EXPECT_THROW(Play(config, parts, ParsePolicyChoice("uniform"), {1}), Error);
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
  const PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  const Played played = Play(config, parts, ParsePolicyChoice("uniform"), {8});
  const EvaluationFigures& report = played.figures;
  std::map<std::string, std::vector<double>> by_problem;
  for (const Episode& episode : played.run.episodes) by_problem[episode.problem_name].push_back(episode.best_speedup());
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
  const auto rewards = [](const Played& of, uint64_t repeat) {
    std::vector<double> values;
    for (const Episode& episode : of.run.episodes) {
      if (episode.step == repeat) values.push_back(episode.reward);
    }
    return values;
  };
  const Played twice = Play(config, parts, ParsePolicyChoice("uniform"), {3, 2});
  const Played once = Play(config, parts, ParsePolicyChoice("uniform"), {3});
  EXPECT_EQ(twice.run.steps, 2U);
  EXPECT_EQ(rewards(twice, 1), rewards(once, 1));
  EXPECT_NE(rewards(twice, 2), rewards(once, 1));
  EXPECT_EQ(twice.figures.episodes, 2 * once.figures.episodes);
  PipelineConfig next = config;
  ++next.seed;
  EXPECT_EQ(rewards(Play(next, parts, ParsePolicyChoice("uniform"), {3}), 1), rewards(twice, 2));
}

TEST(EvaluatePolicyTest, KeepsTheKernelsThatAThoroughEvaluationConfirms) {
  fakes::Reset();
  const PipelineConfig config = fakes::Config("");
  PipelineParts parts = fakes::Parts(config);
  const std::filesystem::path folder = fakes::Folder("kept_kernels");
  const EvaluationFigures report = Play(config, parts, ParsePolicyChoice("uniform"), {6, 1, folder}).figures;
  ASSERT_FALSE(report.kernels.empty());
  for (const auto& [problem, speedup] : report.kernels) {
    EXPECT_GT(speedup, 1);
    EXPECT_TRUE(std::filesystem::exists(folder / problem / "best.cu")) << problem;
    EXPECT_TRUE(std::filesystem::exists(folder / problem / "evidence.json")) << problem;
  }
}

RunMeasures Report(const std::string& name, const std::vector<double>& rewards) {
  RunMeasures report;
  report.folder = name;
  report.seed = 42;
  report.configuration["evaluation.policy"] = name;
  for (size_t i = 0; i < rewards.size(); ++i) {
    Episode episode;
    episode.step = 1;
    episode.problem = i % 2;
    episode.problem_name = i % 2 == 0 ? "one" : "two";
    episode.number = i / 2;
    episode.reward = rewards[i];
    episode.best_correct = std::exp(rewards[i]);
    report.episodes.push_back(episode);
  }
  report.values["heldout_reward"] = 1;
  report.values["heldout_speedup"] = 1;
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
  std::vector<RunGroup> groups = GroupRuns({Report("a", first), Report("b", second), Report("c", third)});
  const std::vector<Comparison> differences = Compare(groups);  // reward and speedup of b, then of c
  ASSERT_EQ(differences.size(), 4U);
  EXPECT_EQ(differences[0].basis, Basis::kEpisodes);
  EXPECT_EQ(differences[0].episodes, 24U);
  EXPECT_NEAR(differences[0].effect, 0.102, 1e-3);
  EXPECT_GT(differences[0].low, 0.1);
  EXPECT_NEAR(std::log(differences[1].effect), 0.102, 1e-3);
  EXPECT_LT(differences[2].low, 0);
  EXPECT_GT(differences[2].high, 0);
  EXPECT_THAT(InWords(differences[0], groups), HasSubstr("b vs a +0.102 [0.10"));
  EXPECT_THAT(InWords(differences[0], groups), HasSubstr("over 24 pairs of episodes: b beats a"));
  EXPECT_THAT(InWords(differences[2], groups), HasSubstr("no difference seen"));
  // A dropped episode has no pair.
  groups[1].runs[0].episodes[0].complete = false;
  EXPECT_EQ(Compare(groups)[0].episodes, 23U);
}

}  // namespace
}  // namespace kgrpo
