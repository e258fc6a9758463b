// Which problems a step draws, and which of its groups are drawn again.
#include "loop/batch.h"

#include "fakes.h"
#include "loop/draws.h"
#include "loop/run_config.h"
#include "test.h"

namespace kgrpo {
namespace {

using ::testing::DoubleNear;
using ::testing::UnorderedElementsAre;

TEST(DrawByWeight, DrawsInProportionAndNoneTwice) {
  const std::vector<double> weights = {1, 3, 0.5, 0.5};
  size_t second = 0, both = 0;
  constexpr uint64_t kDraws = 4000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    KeyedStream random(5, "test", {i});
    const std::vector<uint32_t> drawn = DrawByWeight(random, weights, 4, {});
    EXPECT_EQ(std::set<uint32_t>(drawn.begin(), drawn.end()).size(), 4U);
    second += drawn[0] == 1 ? 1 : 0;
    both += drawn[0] == 1 && drawn[1] == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(second) / kDraws, 0.6, 0.025);  // 3 of 5
  EXPECT_NEAR(static_cast<double>(both) / kDraws, 0.3, 0.025);    // and then 1 of the 2 left
}

TEST(DrawByWeight, BeginsAgainOnceAllAreDrawn) {
  KeyedStream random(5, "test", {1});
  EXPECT_EQ(DrawByWeight(random, std::vector<double>{1, 1, 1}, 1, {true, false, true}), std::vector<uint32_t>{1});
  const std::vector<uint32_t> drawn = DrawByWeight(random, std::vector<double>{1, 1, 1}, 7, {});
  for (const uint32_t problem : {0U, 1U, 2U}) EXPECT_GE(std::ranges::count(drawn, problem), 2) << problem;
  EXPECT_THAT(DrawByWeight(random, std::vector<double>{1, 1, 1}, 2, {true, true, true}, {false, true, false}),
              UnorderedElementsAre(0, 2));
}

PlayedRound Round(uint64_t step, uint32_t problem, uint32_t round, double speedup, double reward) {
  PlayedRound played;
  played.step = step;
  played.problem = problem;
  played.round = round;
  played.speedup = speedup;
  played.reward = reward;
  return played;
}

TEST(ProblemWeightsTest, ByTheSolveRateOfTheLastVisits) {
  ProblemWeights weights(ProblemWeighting::kSolveRate, 4);
  EXPECT_THAT(weights.Get(), ElementsAre(1, 1, 1, 1));
  std::vector<PlayedRound> rounds;
  for (uint64_t step = 1; step <= 5; ++step) {
    // Problem 0: faster in 1 of 4 rounds, but in step 1 in all. Problem 1: always. Problem 2: in half.
    for (uint32_t i = 0; i < 4; ++i) {
      rounds.push_back(Round(step, 0, i, step == 1 || i == 0 ? 2 : 1, 0));
      rounds.push_back(Round(step, 1, i, 1.01, 0));
      rounds.push_back(Round(step, 2, i, i % 2 == 0 ? 3 : 0, 0));
    }
  }
  PlayedRound demonstration = Round(5, 3, 0, 2, 0);
  demonstration.demonstration = true;
  rounds.push_back(demonstration);
  weights.Add(rounds);
  EXPECT_THAT(weights.Get(), ElementsAre(0.5, 0.1, 1, 1));
}

TEST(ProblemWeightsTest, ByTheSpreadWithinARoundNumber) {
  ProblemWeights weights(ProblemWeighting::kRewardSpread, 4);
  weights.Add(std::vector{Round(1, 0, 0, 0, 0), Round(1, 0, 0, 0, 2), Round(1, 0, 1, 0, 5), Round(1, 0, 1, 0, 7),
                          Round(1, 1, 0, 0, 0), Round(1, 1, 0, 0, 1), Round(1, 2, 0, 0, 9), Round(2, 2, 0, 0, 9),
                          Round(2, 3, 0, 0, 1), Round(2, 3, 1, 0, 4)});
  // Standard deviations: sqrt(2), sqrt(1/2), 0, unknown.
  EXPECT_THAT(weights.Get(), ElementsAre(1, DoubleNear(0.5, 1e-12), 0.1, 1));
  ProblemWeights equal(ProblemWeighting::kRewardSpread, 2);
  equal.Add(std::vector{Round(1, 0, 0, 0, 1), Round(1, 0, 0, 0, 1)});
  EXPECT_THAT(equal.Get(), ElementsAre(1, 1));
}

TEST(HasEqualRewardsTest, ComparesRoundByRound) {
  TrajectoryRecord first;
  first.rounds_done.resize(2);
  first.rounds_done[0].reward = 1;
  first.rounds_done[1].reward = 2;
  for (RoundRecord& round : first.rounds_done) round.answer.outcome = KGRPO_CODER_OK;
  std::vector<TrajectoryRecord> group = {first, first};
  EXPECT_TRUE(HasEqualRewards(group));
  std::swap(group[1].rounds_done[0], group[1].rounds_done[1]);
  EXPECT_FALSE(HasEqualRewards(group));
  group[1] = first;
  group[1].rounds_done[1].idle_reward = 0.5;
  EXPECT_FALSE(HasEqualRewards(group));
  group[1] = first;
  group[1].dropped = "round 1: the evaluator failed";
  EXPECT_FALSE(HasEqualRewards(group)) << "more requests do not repair a service";
  group[1] = first;
  group[0].rounds_done[0].answer.outcome = KGRPO_CODER_FAILED;
  EXPECT_FALSE(HasEqualRewards(group));
}

class RedrawTest : public ::testing::Test {
 protected:
  void SetUp() override { fakes::Reset(); }
  void TearDown() override { fakes::Reset(); }
};

// With one suggestion every group has equal rewards: all are drawn again, up to the bound.
TEST_F(RedrawTest, GroupsWithEqualRewardsAreDrawnAgainUpToTheBound) {
  fakes::knobs().policy_suggests = 0;
  fakes::knobs().coder_cost = 0.01;
  PipelineConfig config = fakes::Config(fakes::Folder("redraws"), 0, 2);
  config.loop.batch_size = 4;
  config.loop.redraws = 2;
  std::ostringstream out;
  Console console(out, false);
  fakes::RunIn(config, false, {}, &console);
  RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
  for (const uint64_t step : {1, 2}) {
    const std::vector<TrajectoryRecord> redrawn = database.ReadStep(Purpose::kRedrawn, step);
    const std::vector<TrajectoryRecord> kept = database.ReadStep(Purpose::kTrain, step);
    ASSERT_EQ(redrawn.size(), 8U);
    ASSERT_EQ(kept.size(), 4U);
    std::set<std::string> problems;
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(redrawn[i].trajectory, i);
      problems.insert(redrawn[i].problem_name);
    }
    EXPECT_EQ(kept[0].trajectory, 8U);
    EXPECT_EQ(problems.size(), 4U) << "none twice while others are left";
    EXPECT_FALSE(problems.contains(kept[0].problem_name) && problems.contains(kept[2].problem_name));
    std::map<std::string, double> metrics;
    for (const Metric& metric : database.Metrics(step)) metrics[metric.name] = metric.value;
    EXPECT_EQ(metrics.at(kRedrawnMetric), 4);
    EXPECT_EQ(metrics.at(kEqualMetric), 2);
    EXPECT_DOUBLE_EQ(metrics.at("coder/cost"), 12 * 3 * 0.01);
    EXPECT_EQ(metrics.at("coder/tokens"), 12 * 3 * 10);
    EXPECT_DOUBLE_EQ(metrics.at("time/implement"), 12 * 3 * 0.001);
    for (const std::string& problem : problems) EXPECT_TRUE(metrics.contains("reward/problem/" + problem)) << problem;
    EXPECT_NEAR(metrics.at("coder/cost_total"), static_cast<double>(step) * 12 * 3 * 0.01, 1e-9);
  }
  EXPECT_THAT(out.str(), HasSubstr("groups with equal rewards: 8 were drawn again, 4 stayed in their batches"));
}

TEST_F(RedrawTest, KeepsGroupsWhoseRewardsDiffer) {
  PipelineConfig config = fakes::Config(fakes::Folder("redraws_some"), 0, 12);
  config.loop.redraws = 4;
  fakes::RunIn(config);
  RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
  size_t redrawn = 0;
  for (uint64_t step = 1; step <= 12; ++step) {
    const std::vector<TrajectoryRecord> kept = database.ReadStep(Purpose::kTrain, step);
    const std::vector<TrajectoryRecord> aside = database.ReadStep(Purpose::kRedrawn, step);
    ASSERT_EQ(kept.size(), 8U);
    for (size_t i = 0; i < aside.size(); i += 2) EXPECT_TRUE(HasEqualRewards(std::span(aside).subspan(i, 2)));
    if (aside.size() < 2 * 4 * config.loop.redraws) {
      size_t equal = 0;
      for (size_t i = 0; i < kept.size(); i += 2) equal += HasEqualRewards(std::span(kept).subspan(i, 2)) ? 1 : 0;
      EXPECT_LT(equal, 4U) << step;
    }
    redrawn += aside.size();
  }
  EXPECT_GT(redrawn, 0U);
}

// Eight groups of five problems: trainers pool the groups of a problem that was drawn twice.
TEST_F(RedrawTest, AProblemDrawnTwiceIsOneGroup) {
  PipelineConfig config = fakes::Config(fakes::Folder("redraws_twice"), 0, 12);
  config.loop.batch_size = 16;
  config.loop.rounds = 1;
  config.loop.redraws = 1;
  fakes::RunIn(config);
  RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
  size_t twice = 0;
  for (uint64_t step = 1; step <= 12; ++step) {
    std::map<std::string, std::vector<TrajectoryRecord>> aside;
    std::set<std::string> kept;
    for (TrajectoryRecord& one : database.ReadStep(Purpose::kRedrawn, step)) aside[one.problem_name].push_back(one);
    for (const TrajectoryRecord& one : database.ReadStep(Purpose::kTrain, step)) {
      if (one.trajectory < 16) kept.insert(one.problem_name);
    }
    for (const auto& [problem, trajectories] : aside) {
      EXPECT_TRUE(HasEqualRewards(trajectories)) << problem;
      EXPECT_FALSE(kept.contains(problem));
      twice += trajectories.size() > 2 ? 1 : 0;
    }
  }
  EXPECT_GT(twice, 0U);
}

TEST_F(RedrawTest, NeedsGroups) {
  PipelineConfig config = fakes::Config(fakes::Folder("redraws_refused"), 0, 2);
  config.loop.redraws = 1;
  EXPECT_EQ(FileMistake(config), "");
  config.controls.shuffle_prompts = true;
  EXPECT_THAT(FileMistake(config), HasSubstr("set loop.redraws to 0"));
  config.controls.shuffle_prompts = false;
  config.loop.trajectories_per_problem = 1;
  EXPECT_THAT(FileMistake(config), HasSubstr("loop.trajectories_per_problem is 1"));
}

// The weights follow from the recorded steps before, whatever stage or process played them.
TEST_F(RedrawTest, AStepDrawsByTheRecordOfEarlierSteps) {
  PipelineConfig config = fakes::Config(fakes::Folder("weighted"), 2, 10);
  config.loop.batch_size = 4;
  config.loop.problem_weights = ProblemWeighting::kSolveRate;
  config.evaluation.every = 0;
  fakes::RunIn(config);
  RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
  std::set<double> seen;
  for (uint64_t step = 3; step <= 12; ++step) {
    ProblemWeights weights(ProblemWeighting::kSolveRate, 5);
    weights.Add(database.ReadPlayed(1, step - 1));
    for (const double weight : weights.Get()) seen.insert(weight);
    KeyedStream random(config.seed, "weighted problems", {step});
    const std::vector<uint32_t> expected = DrawByWeight(random, weights.Get(), 2, {});
    const std::vector<TrajectoryRecord> played = database.ReadStep(Purpose::kTrain, step);
    ASSERT_EQ(played.size(), 4U);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(played[i].problem, expected[i / 2]) << step;
  }
  EXPECT_GT(seen.size(), 3U);
}

}  // namespace
}  // namespace kgrpo
