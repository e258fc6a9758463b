// loop/screen.h in whole runs of the fake pipeline: the screen is the evaluator with errors.
#include "loop/screen.h"

#include "fakes.h"
#include "store/database.h"
#include "test.h"

namespace kgrpo {
namespace {

using fakes::knobs;
using fakes::RunIn;

class ScreenTest : public ::testing::Test {
 protected:
  void SetUp() override { fakes::Reset(); }

  static PipelineConfig Config(const std::string& folder, double audit, nlohmann::json options = {{"noise", 0.1}}) {
    PipelineConfig config = fakes::Config(fakes::Folder(folder), 0, 12);
    config.evaluation.every = 0;
    config.loop.trajectories_per_problem = 4;
    config.screen = ScreenConfig{{"fake_evaluator", std::move(options)}, audit, 2};
    return config;
  }

  // The rounds of training whose kernel was judged, with their trajectories.
  static std::vector<std::pair<TrajectoryRecord, RoundRecord>> Rounds(const PipelineConfig& config,
                                                                      Purpose purpose = Purpose::kTrain) {
    RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
    std::vector<std::pair<TrajectoryRecord, RoundRecord>> rounds;
    for (const uint64_t step : database.StepsWithRounds(purpose)) {
      for (const TrajectoryRecord& trajectory : database.ReadStep(purpose, step)) {
        for (const RoundRecord& round : trajectory.rounds_done) rounds.emplace_back(trajectory, round);
      }
    }
    return rounds;
  }

  static const Metric* Find(const RoundRecord& round, const std::string& name) {
    if (!round.evaluation || round.unchanged) return nullptr;
    for (const Metric& metric : round.evaluation->metrics)
      if (metric.name == name) return &metric;
    return nullptr;
  }

  static double Sum(const PipelineConfig& config, const std::string& name) {
    RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
    for (const Metric& sum : database.MetricSums(name))
      if (sum.name == name) return sum.value;
    return 0;
  }
};

TEST_F(ScreenTest, DecidedKernelsAreLabelledAndCostNoEvaluation) {
  const PipelineConfig config = Config("decided", 0);
  RunIn(config);
  int judged = 0, decided = 0;
  for (const auto& [trajectory, round] : Rounds(config)) {
    if (!round.evaluation || round.unchanged) continue;
    ++judged;
    const bool is_decided = Find(round, kScreenDecided) != nullptr;
    EXPECT_NE(is_decided, Find(round, kScreenSpeedup) != nullptr);
    EXPECT_EQ(round.evaluation->time_source, is_decided ? "screen: table" : "table");
    if (!is_decided) continue;
    ++decided;
    if (!round.evaluation->correct) continue;
    EXPECT_NEAR(round.evaluation->seconds * round.speedup, trajectory.baseline_seconds, 1e-12);
  }
  EXPECT_GT(decided, judged / 4);
  EXPECT_LT(decided, judged);
  EXPECT_EQ(knobs().screened, judged);
  EXPECT_EQ(knobs().evaluations, judged - decided);
  EXPECT_EQ(Sum(config, "screen/kernels"), judged);
  EXPECT_EQ(Sum(config, "screen/decided"), decided);
  EXPECT_EQ(Sum(config, "screen/audited"), 0);
}

TEST_F(ScreenTest, AuditsOfEverythingChangeNothingThatIsLearned) {
  PipelineConfig config = Config("audits", 1);
  RunIn(config);
  EXPECT_GT(Sum(config, "screen/audited"), 20);
  PipelineConfig without = Config("no_screen", 1);
  without.screen.reset();
  RunIn(without);
  EXPECT_EQ(fakes::Samples(config.output_dir), fakes::Samples(without.output_dir));
  EXPECT_EQ(fakes::FinalWeights(config.output_dir), fakes::FinalWeights(without.output_dir));
}

// The correlation and the bias by their definition: one audited kernel after the other gets the screen's reward.
TEST_F(ScreenTest, ReportsItsEffectOnAdvantages) {
  const PipelineConfig config = Config("correlation", 1, {{"noise", 0.6}, {"faults", 5}});
  RunIn(config);
  RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
  const auto centred = [](std::vector<double> values) {
    double mean = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (double& value : values) value -= mean;
    return values;
  };
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  double exact = 0, product = 0, used = 0, bias = 0, audits = 0, refuted = 0;
  for (const uint64_t step : database.StepsWithRounds(Purpose::kTrain)) {
    std::map<std::pair<std::string, uint32_t>, std::vector<RoundRecord>> groups;
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
      for (const RoundRecord& round : trajectory.rounds_done)
        groups[{trajectory.problem_name, round.round}].push_back(round);
    }
    for (const auto& [key, rounds] : groups) {
      std::vector<double> rewards;
      for (const RoundRecord& round : rounds) rewards.push_back(round.reward);
      const std::vector<double> advantages = centred(rewards);
      exact += dot(advantages, advantages);
      product += dot(advantages, advantages);
      used += dot(advantages, advantages);
      for (size_t i = 0; i < rounds.size(); ++i) {
        const Metric* estimate = Find(rounds[i], kScreenReward);
        if (estimate == nullptr) continue;
        std::vector<double> changed = rewards;
        changed[i] = estimate->value;
        changed = centred(changed);
        product += dot(advantages, changed) - dot(advantages, advantages);
        used += dot(changed, changed) - dot(advantages, advantages);
        bias += changed[i] - advantages[i];
        ++audits;
        if (rounds[i].evaluation->correct && Find(rounds[i], kScreenSpeedup)->value == 0) ++refuted;
      }
    }
  }
  ASSERT_GT(refuted, 0);
  EXPECT_EQ(Sum(config, "screen/refuted"), refuted);
  EXPECT_EQ(Sum(config, "screen/audited"), audits);
  EXPECT_NEAR(database.MetricCurve("screen/advantage_correlation").back().second, product / std::sqrt(exact * used),
              1e-9);
  EXPECT_NEAR(database.MetricCurve("screen/advantage_bias").back().second, bias / audits, 1e-9);
  EXPECT_LT(bias / audits, 0) << "its faults cost reward";
  EXPECT_GT(database.MetricCurve("screen/error").back().second, 0.1);
}

TEST(ScreenHistoryTest, AScreenThatIsOffByAFactorIsScaled) {
  const ScreenConfig config;
  std::vector<TrajectoryRecord> step(1);
  RoundRecord round;
  round.evaluation.emplace();
  round.evaluation->correct = true;
  round.evaluation->metrics = {{kScreenSpeedup, 1.0}};
  round.speedup = 1.5;
  for (int i = 0; i < 40; ++i) {
    round.answer.source = std::to_string(i);
    step[0].rounds_done.push_back(round);
  }
  ScreenHistory history(2, config);
  EXPECT_EQ(history.Limits()[0].scale, 1);
  history.Add(step);
  const std::vector<ScreenLimit> limits = history.Limits();
  EXPECT_NEAR(limits[0].scale, 1.5, 0.03) << "drawn to 1 by two kernels of ratio 1";
  EXPECT_EQ(limits[1].scale, 1);
  EXPECT_EQ(limits[0].measured.size(), 40U);
  const double error = std::sqrt((10 * 0.04 + 40 * std::log(1.5) * std::log(1.5)) / 50);
  EXPECT_NEAR(limits[0].least, 1.5 * std::exp(-error / 2), 1e-9);
  EXPECT_NEAR(limits[1].least, std::exp(-error / 2), 1e-9);
}

TEST_F(ScreenTest, AVerdictThatLeavesCorrectnessOpenIsLeftToTheEvaluator) {
  const PipelineConfig config = Config("open", 0, {{"noise", 0.1}, {"faults", 1}, {"verdict", "timeout"}});
  RunIn(config);
  EXPECT_EQ(Sum(config, "screen/decided"), 0);
  EXPECT_EQ(knobs().evaluations, knobs().screened);
}

// The recording run's figures are of its scale and reward, and a kernel that its screen decided has no answer.
TEST_F(ScreenTest, AReplayTakesNothingFromTheScreenOfTheRecord) {
  const PipelineConfig recorded = Config("screen_recorded", 0.3);
  RunIn(recorded);
  ASSERT_GT(Sum(recorded, "screen/audited"), 0);
  fakes::Reset();
  PipelineConfig config = Config("screen_replayed", 0);
  config.loop.replay.from = {recorded.output_dir};
  RunIn(config);
  int judged = 0, labelled = 0, decided = 0;
  for (const auto& [trajectory, round] : Rounds(config)) {
    if (!round.evaluation || round.unchanged) continue;
    ++judged;
    decided += Find(round, kScreenDecided) != nullptr ? 1 : 0;
    labelled += Find(round, kScreenDecided) != nullptr || Find(round, kScreenSpeedup) != nullptr ? 1 : 0;
  }
  EXPECT_EQ(knobs().screened, labelled);
  EXPECT_LT(labelled, judged);
  EXPECT_GT(decided, 0);
  EXPECT_EQ(Sum(config, "screen/decided"), decided);
  EXPECT_EQ(Sum(config, "screen/audited"), 0);
}

TEST_F(ScreenTest, AProblemThatOnlyTheScreenCannotReadIsNotScreened) {
  PipelineConfig config = Config("unscreened", 0);
  config.train_problems.emplace_back("map_unscreened");
  RunIn(config);
  int judged = 0;
  for (const auto& [trajectory, round] : Rounds(config)) {
    if (trajectory.problem_name != "map_unscreened" || !round.evaluation || round.unchanged) continue;
    ++judged;
    EXPECT_EQ(Find(round, kScreenDecided), nullptr);
    EXPECT_EQ(Find(round, kScreenSpeedup), nullptr);
  }
  EXPECT_GT(judged, 0);
}

TEST_F(ScreenTest, ARewardThatFailsOnAnEstimateDropsNoRound) {
  knobs().reward_fails_screened = true;
  const PipelineConfig config = Config("reward_fails", 1);
  RunIn(config);
  for (const auto& [trajectory, round] : Rounds(config)) EXPECT_EQ(trajectory.dropped, "");
  EXPECT_EQ(Rounds(config).size(), 12U * 8 * 3);
  EXPECT_EQ(Sum(config, "screen/audited"), 0);
  EXPECT_EQ(Sum(config, "screen/decided"), 0);
}

TEST_F(ScreenTest, AStoppedRunResumesToTheSameEnd) {
  for (const uint32_t staleness : {0, 1}) {
    const auto config_of = [staleness](const std::string& folder) {
      PipelineConfig config = Config(folder, 0.3);
      config.loop.trajectories_per_problem = 2;
      config.loop.max_staleness = staleness;
      return config;
    };
    fakes::Reset();
    const PipelineConfig whole = config_of("screen_whole");
    RunIn(whole);
    for (const int steps : {1, 5, 10}) {
      fakes::Reset();
      const PipelineConfig config = config_of("screen_stopped");
      knobs().cancel_after_updates = steps;
      EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
      fakes::Reset();
      RunIn(config, /*resume=*/true);
      EXPECT_EQ(fakes::Samples(config.output_dir), fakes::Samples(whole.output_dir)) << steps;
      EXPECT_EQ(fakes::FinalWeights(config.output_dir), fakes::FinalWeights(whole.output_dir)) << steps;
      EXPECT_EQ(Sum(config, "screen/audited"), Sum(whole, "screen/audited")) << steps;
    }
  }
}

}  // namespace
}  // namespace kgrpo
