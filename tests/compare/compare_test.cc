// Comparing groups of runs: the rate of false differences is as stated, real differences are found, and runs that
// cannot be compared are not.
#include "compare/compare.h"
#include "compare/comparison_json.h"
#include "test.h"

namespace kgrpo {
namespace {

RunMeasures OneRun(const std::string& variant, uint64_t seed, double reward, double speedup = 2) {
  RunMeasures run;
  run.folder = variant + "/seed-" + std::to_string(seed);
  run.variant = variant;
  run.seed = seed;
  run.finished = true;
  run.configuration = {{"loop.rounds", "4"}, {"trainer.options.gamma", variant == "a" ? "0.4" : "0"}};
  run.values = {{"heldout_reward", reward}, {"heldout_speedup", speedup}};
  run.drawn = {"p" + std::to_string(seed), "q"};
  return run;
}

const Comparison& Of(const std::vector<Comparison>& comparisons, const std::string& measure) {
  for (const Comparison& comparison : comparisons) {
    if (comparison.measure->name == measure) return comparison;
  }
  throw std::runtime_error(measure + " was not compared");
}

// Groups that are alike: what a run's seed decides is shared by the pair, noise is not.
TEST(CompareTest, AStatementOfDifferenceIsWrongAsSeldomAsItSays) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 1);
  for (const uint64_t seeds : {2, 3, 5}) {
    constexpr int kPairs = 2000;
    int wrong = 0;
    for (int pair = 0; pair < kPairs; ++pair) {
      std::vector<RunMeasures> runs;
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        const double shared = 3 * normal(random);
        runs.push_back(OneRun("a", seed, 10 + shared + normal(random)));
        runs.push_back(OneRun("b", seed, 10 + shared + normal(random)));
      }
      wrong += Of(Compare(GroupRuns(runs)), "heldout_reward").differs() ? 1 : 0;
    }
    // 5%, give or take four standard deviations of a count of 2,000.
    EXPECT_NEAR(static_cast<double>(wrong) / kPairs, 0.05, 0.02) << seeds << " seeds";
  }
}

TEST(CompareTest, ThreeVariantsTogetherAreWrongAsSeldomAsTwo) {
  std::mt19937 random(4);
  std::normal_distribution<double> normal(0, 1);
  constexpr int kExperiments = 2000;
  int wrong = 0;
  for (int experiment = 0; experiment < kExperiments; ++experiment) {
    std::vector<RunMeasures> runs;
    for (const char* variant : {"a", "b", "c", "d"}) {
      for (uint64_t seed = 0; seed < 3; ++seed) runs.push_back(OneRun(variant, seed, normal(random)));
    }
    bool any = false;
    for (const Comparison& comparison : Compare(GroupRuns(runs))) {
      if (std::string(comparison.measure->name) == "heldout_reward") any |= comparison.differs();
    }
    wrong += any ? 1 : 0;
  }
  EXPECT_LE(static_cast<double>(wrong) / kExperiments, 0.07);
}

TEST(CompareTest, PairingFindsADifferenceThatTheSeedsSpreadWouldHide) {
  std::vector<RunMeasures> runs;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const double shared = 5.0 * static_cast<double>(seed);
    runs.push_back(OneRun("a", seed, shared, 2));
    runs.push_back(OneRun("b", seed, shared + 0.5 + 0.01 * static_cast<double>(seed), 3));
  }
  const std::vector<RunGroup> groups = GroupRuns(runs);
  const std::vector<Comparison> comparisons = Compare(groups);
  const Comparison& reward = Of(comparisons, "heldout_reward");
  EXPECT_EQ(reward.basis, Basis::kPairedSeeds);
  EXPECT_NEAR(reward.effect, 0.51, 1e-9);
  EXPECT_TRUE(reward.differs());
  const Comparison& speedup = Of(comparisons, "heldout_speedup");
  EXPECT_NEAR(speedup.effect, 1.5, 1e-9) << "speedups are compared by their quotient";
  EXPECT_EQ(InWords(reward, groups), "held-out reward: b vs a +0.51 [0.485, 0.535], paired over 3 seeds: b beats a");
  // The other way round it is the same statement.
  std::ranges::reverse(runs);
  const std::vector<RunGroup> turned = GroupRuns(runs);
  EXPECT_EQ(InWords(Of(Compare(turned), "heldout_reward"), turned),
            "held-out reward: a vs b -0.51 [-0.535, -0.485], paired over 3 seeds: b beats a");
}

TEST(CompareTest, RunsThatDrewOtherProblemsAreNotPaired) {
  std::vector<RunMeasures> runs;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    runs.push_back(OneRun("a", seed, static_cast<double>(seed)));
    runs.push_back(OneRun("b", seed, static_cast<double>(seed) + 0.1));
    runs.back().drawn[0] = "another";
  }
  const std::vector<RunGroup> groups = GroupRuns(runs);
  EXPECT_FALSE(ArePaired(groups[0], groups[1]));
  const std::vector<Comparison> comparisons = Compare(groups);
  const Comparison& reward = Of(comparisons, "heldout_reward");
  EXPECT_EQ(reward.basis, Basis::kSeeds);
  EXPECT_FALSE(reward.differs());
  EXPECT_THAT(InWords(reward, groups),
              testing::MatchesRegex("held-out reward: b vs a \\+0.1 \\[-.*, .*\\], not paired, "
                                    "3 seeds: no difference seen"));
}

TEST(CompareTest, OneSeedIsComparedByProblemsAndSaysSo) {
  RunMeasures a = OneRun("a", 1, 1.0), b = OneRun("b", 1, 1.3);
  for (int problem = 0; problem < 12; ++problem) {
    a.by_problem["heldout_reward"]["p" + std::to_string(problem)] = problem;
    b.by_problem["heldout_reward"]["p" + std::to_string(problem)] = problem + 0.2 + 0.02 * problem;
  }
  const std::vector<Comparison> comparisons = Compare(GroupRuns({a, b}));
  const Comparison& reward = Of(comparisons, "heldout_reward");
  EXPECT_EQ(reward.basis, Basis::kProblems);
  EXPECT_TRUE(reward.differs());
  const Comparison& speedup = Of(comparisons, "heldout_speedup");  // not known by problem
  EXPECT_EQ(speedup.basis, Basis::kNone);
  EXPECT_FALSE(speedup.differs());
  EXPECT_THAT(InWords(speedup, GroupRuns({a, b})), HasSubstr("; no interval: it takes two common seeds"));
  EXPECT_THAT(InWords(reward, GroupRuns({a, b})), HasSubstr("], one seed, over 12 problems: b is better on them"));
  for (RunMeasures* run : {&a, &b}) {
    auto& problems = run->by_problem["heldout_reward"];
    problems.erase(std::next(problems.begin(), 4), problems.end());
  }
  EXPECT_EQ(
      InWords(Of(Compare(GroupRuns({a, b})), "heldout_reward"), GroupRuns({a, b})),
      "held-out reward: b vs a +0.3; no interval: it takes two common seeds, or five problems that both measured (here "
      "4)");
}

TEST(CompareTest, RewardsOfDifferentScalesAreNotCompared) {
  std::vector<RunMeasures> runs;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    runs.push_back(OneRun("a", seed, 1));
    runs.push_back(OneRun("b", seed, 2));
    runs.back().configuration["reward.options.speedup_cap"] = "2";
  }
  const std::vector<RunGroup> groups = GroupRuns(runs);
  EXPECT_FALSE(SameReward(groups));
  EXPECT_EQ(Differences(groups).at("reward.options.speedup_cap"), (std::vector<std::string>{"-", "2"}));
  for (const Comparison& comparison : Compare(groups)) EXPECT_FALSE(comparison.measure->own_scale);
}

// Four runs of one seed are one sample of the configuration, however often it is repeated.
TEST(CompareTest, RepeatsOfASeedAreNoSeeds) {
  std::vector<RunMeasures> runs = {OneRun("a", 1, 1.0), OneRun("a", 1, 1.0), OneRun("b", 1, 1.342),
                                   OneRun("b", 1, 1.342)};
  std::vector<RunGroup> groups = GroupRuns(runs);
  EXPECT_EQ(SeedsText(groups[0]), "1 seed, 2 runs");
  const Comparison none = Of(Compare(groups), "heldout_reward");
  EXPECT_EQ(none.basis, Basis::kNone);
  EXPECT_EQ(none.seeds, 0U);
  EXPECT_FALSE(none.differs());
  EXPECT_NEAR(none.effect, 0.342, 1e-12);
  EXPECT_THAT(NotesOf(groups, {}), testing::Contains(HasSubstr("one seed: other seeds may come out otherwise")));
  EXPECT_THAT(NotesOf(groups, {}),
              testing::Contains(HasSubstr("one group of 1 seed, 2 runs; repeats of a seed are averaged")));
  const auto json = ComparisonToJson(groups, Compare(groups), {});
  EXPECT_EQ(json["groups"][0]["seeds"], 1);
  EXPECT_EQ(json["comparisons"][0]["seeds"], 0);
  // Not paired: the same.
  for (RunMeasures& run : groups[1].runs) run.drawn[0] = "another";
  EXPECT_EQ(Of(Compare(groups), "heldout_reward").basis, Basis::kNone);
}

// A sweep of 2 x 2 x 3 with known effects: one line for each key, within the range of what is measured.
TEST(CompareTest, ASweepIsComparedByItsKeys) {
  std::vector<RunMeasures> runs;
  for (const char* rate : {"0.1", "0.2"}) {
    for (const char* gamma : {"0", "0.4"}) {
      for (const char* rounds : {"2", "4", "8"}) {
        for (uint64_t seed = 0; seed < 2; ++seed) {
          const double reward = 2 * std::stod(gamma) + static_cast<double>(seed);
          RunMeasures run = OneRun(std::string(rate) + gamma + rounds, seed, reward);
          run.configuration = {
              {"loop.rounds", rounds}, {"trainer.options.gamma", gamma}, {"trainer.options.rate", rate}};
          run.values["heldout_correct"] = std::string(rounds) == "8" ? 1 : seed == 0 ? 0 : 0.1;
          runs.push_back(std::move(run));
        }
      }
    }
  }
  const std::vector<RunGroup> groups = GroupRuns(runs);
  const std::vector<std::string> lines = WordsByKey(groups, Compare(groups));
  const auto line = [&](const std::string& measure, const std::string& key) {
    const std::string begin = measure + " by " + key + " ";
    const auto found = std::ranges::find_if(lines, [&](const auto& one) { return one.starts_with(begin); });
    return found == lines.end() ? "" : *found;
  };
  EXPECT_EQ(std::ranges::count_if(lines, [](const auto& one) { return one.starts_with("held-out reward by "); }), 3);
  EXPECT_EQ(
      line("held-out reward", "trainer.options.gamma"),
      "held-out reward by trainer.options.gamma (over 12 pairs of runs alike in all else): 0.4 vs 0 +0.8 [0.8, 0.8]");
  EXPECT_THAT(line("held-out reward", "loop.rounds"), HasSubstr("4 vs 2 +0 [0, 0]; 8 vs 2 +0 [0, 0]"));
  EXPECT_THAT(line("held-out correct rate", "loop.rounds"), testing::ContainsRegex("8 vs 2 .*, 1\\]$"));
}

TEST(CompareTest, RepeatsOfOneSeedAreComparedByTheMeansOfTheirProblems) {
  std::vector<RunMeasures> runs;
  for (const double noise : {-0.5, 0.5}) {
    for (const char* variant : {"a", "b"}) {
      runs.push_back(OneRun(variant, 1, 0));
      for (int problem = 0; problem < 12; ++problem) {
        const std::string name = "p" + std::to_string(problem);
        const double better = variant[0] == 'b' ? 0.2 + 0.02 * problem : 0;
        runs.back().by_problem["heldout_reward"][name] = problem + better + noise;
        runs.back().by_problem["heldout_speedup"][name] = std::exp(better + noise);
      }
    }
  }
  const std::vector<Comparison> repeated = Compare(GroupRuns(runs));
  const Comparison& reward = Of(repeated, "heldout_reward");
  EXPECT_EQ(reward.basis, Basis::kProblems);
  EXPECT_EQ(reward.seeds, 1U);
  EXPECT_EQ(reward.common_problems, 12U);
  EXPECT_NEAR(reward.effect, 0.31, 1e-9);
  EXPECT_GT(reward.low, 0.2) << "the noise of the repeats is averaged";
  EXPECT_NEAR(std::log(Of(repeated, "heldout_speedup").effect), 0.31, 1e-9) << "ratios by their geometric mean";
}

// The rate of false differences holds also where one seed is repeated often.
TEST(CompareTest, RepeatedSeedsCountOnceEach) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal(0, 1);
  constexpr int kPairs = 2000;
  int wrong = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    std::vector<RunMeasures> runs;
    for (const char* variant : {"a", "b"}) {
      for (uint64_t seed = 0; seed < 3; ++seed) {
        const double of_seed = normal(random);
        for (uint64_t repeat = 0; repeat <= 2 * seed; ++repeat)
          runs.push_back(OneRun(variant, seed, of_seed + 0.1 * normal(random)));
      }
    }
    const Comparison reward = Of(Compare(GroupRuns(runs)), "heldout_reward");
    EXPECT_EQ(reward.seeds, 3U);
    wrong += reward.differs() ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(wrong) / kPairs, 0.05, 0.02);
}

TEST(CompareTest, ARunThatChangedOnTheWayIsNamedAndItsRewardsHaveSeveralScales) {
  std::vector<RunMeasures> runs;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    runs.push_back(OneRun("a", seed, 1));
    runs.push_back(OneRun("b", seed, 2));
  }
  runs[1].changes = {{20, "loop.max_steps", "100", "200"},
                     {20, "trainer.options.beta", "0.04", "0.0"},
                     {150, "coder.options.system", "null", "\"" + std::string(80, 'x') + "\""}};
  std::vector<RunGroup> groups = GroupRuns(runs);
  EXPECT_THAT(NotesOf(groups, {}),
              testing::Contains("b/seed-0 changed on the way: after step 20 loop.max_steps 100 -> 200, "
                                "trainer.options.beta 0.04 -> 0.0; after step 150 coder.options.system null -> \"" +
                                std::string(56, 'x') + "..."));
  EXPECT_TRUE(SameReward(groups));
  const auto run = ComparisonToJson(groups, {}, {})["groups"][1]["runs"][0];
  EXPECT_EQ(run["changes"][0], nlohmann::ordered_json::parse(
                                   R"({"after_step": 20, "key": "loop.max_steps", "before": 100, "after": 200})"));
  groups[1].runs[0].changes.push_back({30, "reward.options.cap", "1", "2"});
  EXPECT_FALSE(SameReward(groups));
  for (const Comparison& comparison : Compare(groups)) EXPECT_FALSE(comparison.measure->own_scale);
}

}  // namespace
}  // namespace kgrpo
