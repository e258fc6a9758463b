// loop/recorded_rounds.h: a run imitates the best rounds of another, or replays them without coder and evaluator.
#include "loop/recorded_rounds.h"

#include "fakes.h"
#include "loop/run_config.h"
#include "loop/run_problems.h"
#include "store/database.h"
#include "store/inputs.h"
#include "test.h"

namespace kgrpo {
namespace {

using fakes::knobs;
using fakes::RunIn;

class RecordedRoundsTest : public ::testing::Test {
 protected:
  // A run to learn from, once.
  void SetUp() override {
    fakes::Reset();
    if (!recorded_.empty()) return;
    const PipelineConfig config = Training("recorded");
    RunIn(config);
    recorded_ = config.output_dir;
    fakes::Reset();
  }

  static PipelineConfig Training(const std::string& folder) {
    PipelineConfig config = fakes::Config(fakes::Folder(folder), 0, 6);
    config.evaluation.every = 0;
    return config;
  }

  static PipelineConfig Imitating(const std::string& folder) {
    PipelineConfig config = fakes::Config(fakes::Folder(folder), 4, 3);
    config.evaluation.every = 0;
    config.stages[0].suggestions = SuggestionSource::kPolicy;
    config.stages[0].episodes = 0;
    config.stages[0].demonstrations.from = {recorded_};
    return config;
  }

  static std::string MessageOf(const PipelineConfig& config) {
    return test::MessageOf([&] { RunIn(config); }, KGRPO_ERROR_INVALID, "");
  }

  static void ExpectSame(const PipelineConfig& a, const PipelineConfig& b) {
    EXPECT_EQ(fakes::Samples(a.output_dir), fakes::Samples(b.output_dir));
    EXPECT_EQ(fakes::FinalWeights(a.output_dir), fakes::FinalWeights(b.output_dir));
  }

  inline static std::string recorded_;
};

TEST_F(RecordedRoundsTest, TheFastestKernelFromEachStateIsImitated) {
  // SQL's own grouping of the recorded run: the fastest kernel that was made from each kernel of a problem.
  std::map<std::pair<std::string, std::string>, std::pair<double, std::string>> fastest;
  {
    Database database(fs::path(recorded_) / "run.sqlite");
    Statement select(database,
                     "SELECT problem_name, (SELECT text FROM sources WHERE hash = code_b), max(speedup), suggestion "
                     "FROM rounds JOIN trajectories USING (purpose, step, trajectory) GROUP BY 1, 2");
    while (select.Step()) fastest[{select.Text(0), select.Text(1)}] = {select.Real(2), select.Text(3)};
  }
  PipelineConfig config = Imitating("imitating");
  config.stages.resize(1);
  RunIn(config);
  EXPECT_EQ(knobs().coder_calls, 0);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t rounds = 0, faster = 0;
  for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kDemonstration, 1)) {
    EXPECT_EQ(config.train_problems.at(trajectory.problem), trajectory.problem_name);
    for (const RoundRecord& round : trajectory.rounds_done) {
      const auto& [speedup, suggestion] = fastest.at({trajectory.problem_name, round.code_b});
      EXPECT_EQ(round.speedup, speedup);
      EXPECT_FALSE(round.prompt_ids.empty());
      ASSERT_EQ(round.completion_ids.size(), 2U);
      EXPECT_TRUE(round.answer.reused);
      EXPECT_EQ(round.answer.cost, 0);
      ++rounds;
      faster += round.suggestion == suggestion ? 1 : 0;
    }
  }
  EXPECT_GT(rounds, 20U);
  EXPECT_GE(faster, rounds * 9 / 10) << "others only where two are equally fast";
}

TEST_F(RecordedRoundsTest, WithoutRoomForItsSuggestionsARunIsRefused) {
  PipelineConfig config = Imitating("too_long");
  config.loop.sampling.max_new_tokens = 1;  // each has two
  EXPECT_THAT(MessageOf(config), HasSubstr("too long for the context"));
}

// Before the stages that come first have cost anything.
TEST_F(RecordedRoundsTest, ALaterStagesRunsAreReadAtTheStart) {
  PipelineConfig config = Imitating("later");
  std::swap(config.stages[0], config.stages[1]);
  config.stages[1].demonstrations.from = {"nowhere"};
  EXPECT_THAT(MessageOf(config), HasSubstr("there is no folder nowhere"));
  EXPECT_EQ(knobs().coder_calls, 0);
  // A new run that overwrites one with recorded demonstrations.
  config = Imitating("overwritten");
  config.resolved_yaml = "name: fake\ntrainer: [{demonstrations: {from: [recorded]}}, {steps: 3}]\n";
  RunIn(config);
  config.resolved_yaml = "name: fake\ntrainer: [{demonstrations: {from: [nowhere]}}, {steps: 3}]\n";
  config.stages[0].demonstrations.from = {"nowhere"};
  PipelineParts parts = fakes::Parts(config);
  EXPECT_THROW(RunProblems(config, parts), Error);
}

// Estimates of earlier versions (`screen`): where the evaluator measured a kernel, that counts, and an estimate is not
// replayed.
TEST_F(RecordedRoundsTest, EstimatesDoNotReplaceMeasurements) {
  const PipelineConfig config = fakes::Config(fakes::Folder("estimates"), 0);
  PipelineParts parts = fakes::Parts(config);
  WorkerPool pool(1);
  const ProblemSet problems(*parts.evaluator, {"map_a"}, pool, false);
  fs::create_directories(config.output_dir);
  {
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    StepRecord step;
    step.step = 1;
    step.has_rollouts = true;
    const auto play = [&](const std::string& suggestion, const std::string& from, const std::string& to, double speedup,
                          bool decided) {
      TrajectoryRecord& trajectory = step.trajectories.emplace_back();
      trajectory.trajectory = step.trajectories.size() - 1;
      trajectory.problem_name = "map_a";
      trajectory.baseline_seconds = problems[0].baseline.seconds;
      RoundRecord& round = trajectory.rounds_done.emplace_back();
      round.suggestion = suggestion;
      round.code_a = round.code_b = from;
      round.answer.outcome = KGRPO_CODER_OK;
      round.answer.source = to;
      round.speedup = speedup;
      round.evaluation.emplace();
      round.evaluation->compiled = round.evaluation->correct = true;
      round.evaluation->modelled = decided;
      round.evaluation->time_source = problems[0].baseline.time_source;
      if (decided) round.evaluation->metrics = {{"screen/decided", 1}};
    };
    play("tile", problems[0].source, "tiled", 2, false);
    play("estimated", problems[0].source, "tiled", 4, true);
    play("unroll", "tiled", "unrolled", 3, false);
    database.WriteStep(step, {});
  }
  const RecordedRounds recorded({config.output_dir}, problems, config, {}, /*before=*/2);
  EXPECT_NE(recorded.Find("map_a", problems[0].source, "tile"), nullptr);
  EXPECT_EQ(recorded.Find("map_a", problems[0].source, "estimated"), nullptr);
  size_t imitated = 0;
  for (const TrajectoryRecord& trajectory : recorded.ToImitate())
    imitated += trajectory.rounds_done.at(0).suggestion == "unroll" ? 1 : 0;
  EXPECT_EQ(imitated, 1U) << "3 is 1.5 times the measured 2, not 0.75 times the estimated 4";
}

TEST_F(RecordedRoundsTest, AStoppedRunResumesWithoutTheOther) {
  const PipelineConfig whole = Imitating("imitating_whole");
  RunIn(whole);
  for (const int steps : {2, 5}) {
    fakes::Reset();
    PipelineConfig config = Imitating("imitating_stopped");
    knobs().cancel_after_updates = steps;
    EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
    fakes::Reset();
    config.stages[0].demonstrations.from = {"deleted"};
    RunIn(config, /*resume=*/true);
    ExpectSame(config, whole);
  }
}

TEST_F(RecordedRoundsTest, ALastStageImitatesItsOwnRun) {
  const auto config_of = [](const std::string& folder) {
    PipelineConfig config = fakes::Config(fakes::Folder(folder), 2, 3);
    config.evaluation.every = 0;
    config.stages.push_back(config.stages[0]);
    config.stages[2].suggestions = SuggestionSource::kPolicy;
    config.stages[2].episodes = 0;
    config.stages[2].demonstrations.from = {"output_dir"};
    config.stages.push_back(config.stages[1]);
    return config;
  };
  const PipelineConfig whole = config_of("own_whole");
  RunIn(whole);
  RunDatabase database(fs::path(whole.output_dir) / "run.sqlite");
  std::map<std::string, double> fastest;  // that the first two stages found
  for (const auto& [purpose, step] :
       {std::pair{Purpose::kDemonstration, 1}, {Purpose::kTrain, 3}, {Purpose::kTrain, 4}, {Purpose::kTrain, 5}}) {
    for (const TrajectoryRecord& trajectory : database.ReadStep(purpose, static_cast<uint64_t>(step))) {
      for (const RoundRecord& round : trajectory.rounds_done) {
        double& speedup = fastest[trajectory.problem_name + round.code_b];
        speedup = std::max(speedup, round.speedup);
      }
    }
  }
  const std::vector<TrajectoryRecord> imitated = database.ReadStep(Purpose::kDemonstration, 6);
  EXPECT_FALSE(imitated.empty());
  for (const TrajectoryRecord& trajectory : imitated) {
    for (const RoundRecord& round : trajectory.rounds_done)
      EXPECT_EQ(round.speedup, fastest.at(trajectory.problem_name + round.code_b));
  }
  for (const int steps : {4, 7, 9}) {  // in the second, third and fourth stage
    fakes::Reset();
    const PipelineConfig config = config_of("own_stopped");
    knobs().cancel_after_updates = steps;
    EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
    fakes::Reset();
    RunIn(config, /*resume=*/true);
    ExpectSame(config, whole);
  }
}

TEST_F(RecordedRoundsTest, RefusesRunsThatCannotBeImitated) {
  PipelineConfig config = Imitating("refused");
  config.stages[0].demonstrations.from = {"nowhere"};
  EXPECT_THAT(MessageOf(config), HasSubstr("there is no folder nowhere"));
  config = Imitating("refused");
  config.resolved_yaml = "name: fake\nprompt: {user: other}\n";
  EXPECT_THAT(MessageOf(config), HasSubstr("prompt.user differs from this pipeline's"));
  config.resolved_yaml = "name: fake\nprompt: {lessons: 3, lessons_from: []}\n";
  EXPECT_NO_THROW(RequireSamePrompts({recorded_}, config)) << "keys of another version do not matter";
  config = Imitating("refused");
  config.stages[1].demonstrations.from = {recorded_};
  EXPECT_THAT(MessageOf(config), HasSubstr("stage 2 (fake_climber) does not learn from demonstrations"));
}

// Times and verdicts of another device, problem or evaluator say nothing here.
TEST_F(RecordedRoundsTest, RoundsOfSomethingElseAreLeftOutByCount) {
  PipelineConfig config = Training("others");
  PipelineParts parts = fakes::Parts(config);
  const RunProblems problems(config, parts);
  const fs::path copy = fakes::Folder("others_recorded");
  fs::copy(recorded_, copy, fs::copy_options::recursive);
  const auto left_out = [&](const InputDigests& inputs = {}) {
    return RecordedRounds({copy.string()}, problems.train, config, inputs).LeftOut();
  };
  const auto set = [&](const char* sql) { Database(copy / "run.sqlite").Execute(sql); };
  EXPECT_EQ(left_out(), "");
  set("UPDATE rounds SET time_source = 'L4' WHERE step = 1 AND correct = 1");
  EXPECT_THAT(left_out(), testing::MatchesRegex("; left out: [0-9]+ of another device \\(L4\\)"));
  set("UPDATE rounds SET time_source = 'table'");
  const std::string ours = problems.train[0].name + kContent;
  set(("INSERT OR REPLACE INTO run VALUES('inputs', '{\"problems." + ours + "\": \"new\"}')").c_str());
  EXPECT_EQ(left_out({{"problems." + ours, "new"}}), "");
  EXPECT_THAT(left_out({{"problems." + ours, "old"}}),
              HasSubstr(" of another problem (" + problems.train[0].name + ")"));
  // The problem was another one up to step 2.
  set(("INSERT INTO changes VALUES(2, 'problems." + ours + "', '\"old\"', '\"new\"')").c_str());
  const std::string some = left_out({{"problems." + ours, "new"}});
  EXPECT_THAT(some, HasSubstr(" of another problem (" + problems.train[0].name + ")"));
  EXPECT_NE(some, left_out({{"problems." + ours, "old"}}));
  set("UPDATE run SET value = 'evaluator: {plugin: e, options: {seeds: 2}}' WHERE key = 'resolved_yaml'");
  config.resolved_yaml = "evaluator: {plugin: e, options: {seeds: 3}}";
  EXPECT_THAT(test::MessageOf([&] { left_out(); }, KGRPO_ERROR_INVALID),
              HasSubstr("no recorded round can be used; left out: "));
}

TEST_F(RecordedRoundsTest, AReplayedRunAsksNobody) {
  PipelineConfig config = Training("replayed");
  config.loop.replay.from = {recorded_};
  RunIn(config);
  EXPECT_EQ(knobs().coder_calls, 0);
  EXPECT_EQ(knobs().evaluations, 0);
  EXPECT_EQ(fakes::Samples(config.output_dir), fakes::Samples(recorded_));
  EXPECT_EQ(fakes::FinalWeights(config.output_dir), fakes::FinalWeights(recorded_));
}

TEST_F(RecordedRoundsTest, AnUnrecordedSuggestionIsAskedForOrRefused) {
  PipelineConfig config = Training("asks");
  config.seed = 8;
  config.loop.replay.from = {recorded_};
  RunIn(config);
  const int asked = knobs().coder_calls;
  RunDatabase with(fs::path(config.output_dir) / "run.sqlite");
  const CoderTotals totals = with.ReadCoderTotals(6);
  EXPECT_GT(asked, 0);
  EXPECT_EQ(totals.answers, 6 * 8 * 3U);
  EXPECT_EQ(totals.reused, totals.answers - static_cast<uint64_t>(asked));

  fakes::Reset();
  config.output_dir = fakes::Folder("refuses");
  config.loop.replay.only = true;
  RunIn(config);
  EXPECT_EQ(knobs().coder_calls, 0);
  RunDatabase without(fs::path(config.output_dir) / "run.sqlite");
  size_t refused = 0;
  for (const uint64_t step : without.StepsWithRounds(Purpose::kTrain)) {
    for (const TrajectoryRecord& trajectory : without.ReadStep(Purpose::kTrain, step)) {
      if (!trajectory.failed_round) continue;
      ++refused;
      EXPECT_EQ(trajectory.failed_round->answer.outcome, KGRPO_CODER_REFUSED);
    }
  }
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(without.ReadCoderTotals(6).errors, refused);
}

TEST_F(RecordedRoundsTest, AStoppedReplayResumesToTheSameEnd) {
  PipelineConfig config = Training("replay_whole");
  config.seed = 8;
  config.loop.replay = {{recorded_}, true};
  RunIn(config);
  const PipelineConfig whole = config;
  config.output_dir = fakes::Folder("replay_stopped");
  knobs().cancel_after_updates = knobs().updates + 4;
  EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
  fakes::Reset();
  RunIn(config, /*resume=*/true);
  ExpectSame(config, whole);
}

}  // namespace
}  // namespace kgrpo
