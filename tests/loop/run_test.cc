// loop/run.h: whole runs of the fake pipeline, and their results. Runs that stop early: run_stops_test.cc.
#include "loop/run.h"

#include "base/files.h"
#include "fakes.h"
#include "loop/draws.h"
#include "loop/measurements.h"
#include "loop/run_config.h"
#include "store/checkpoints.h"
#include "store/database.h"
#include "test.h"

namespace kgrpo {
namespace {

using fakes::Folder;
using fakes::knobs;
using fakes::RunIn;

class RunTest : public ::testing::Test {
 protected:
  void SetUp() override { fakes::Reset(); }
};

double MeanReward(const fs::path& output, uint64_t first, uint64_t last) {
  RunDatabase database(output / "run.sqlite");
  double sum = 0;
  for (const StepSummary& step : database.Steps()) {
    if (step.step >= first && step.step <= last) sum += step.reward_mean.value();
  }
  return sum / static_cast<double>(last - first + 1);
}

TEST_F(RunTest, LeavesEverythingBehind) {
  const PipelineConfig config = fakes::Config(Folder("whole"));
  const RunOutcome outcome = RunIn(config);
  EXPECT_EQ(outcome.status, RunOutcome::Status::kFinished);
  EXPECT_EQ(outcome.steps, 11u);
  EXPECT_EQ(outcome.ExitCode(), 0);
  const fs::path output = config.output_dir;
  for (const char* name :
       {"resolved.yaml", "run.json", "run.sqlite", "final/table.bin", "checkpoints/step-11/state.json",
        "checkpoints/step-11/policy/table.bin", "checkpoints/step-11/reference/table.bin"}) {
    EXPECT_TRUE(fs::exists(output / name)) << name;
  }
  RunDatabase database(output / "run.sqlite");
  EXPECT_EQ(database.Steps().size(), 11u);
  EXPECT_TRUE(database.Get("finished"));
  const std::vector<TrajectoryRecord> trajectories = database.ReadStep(Purpose::kTrain, 5);
  ASSERT_EQ(trajectories.size(), 8u);
  for (const TrajectoryRecord& trajectory : trajectories) EXPECT_EQ(trajectory.rounds_done.size(), 3u);
  EXPECT_EQ(database.ReadStep(Purpose::kHeldout, 8).size(), 6u);
  EXPECT_EQ(database.ReadStep(Purpose::kDemonstration, 1).size(), 6u);
  std::map<std::string, double> metrics;
  for (const Metric& metric : database.Metrics(8)) metrics[metric.name] = metric.value;
  for (const char* name : {"reward", "reward_std", "rewards/speedup/mean", "kernel/correct_rate", "kernel/fast_1",
                           "coder/not_applicable_rate", "policy/favourite_share", "time/train", "time/train_wait",
                           "time/generate", "loss", "heldout/reward", "step_time", "time/record", "time/rollout",
                           "time/device_wait", "time/heldout", "time/judge_best"}) {
    EXPECT_TRUE(metrics.contains(name)) << name;
  }
  EXPECT_EQ(database.MetricCurve("time/checkpoint").size(), 4u) << "every third step, and the last";
  EXPECT_EQ(database.MetricCurve("time/begin_stage").size(), 2u);
  EXPECT_EQ(database.MetricCurve("time/record").size(), 10u) << "each step but the first has that of the one before";
  EXPECT_EQ(database.MetricSums("time/checkpoint").size(), 1u);
  EXPECT_TRUE(metrics.contains("reward/problem/" + database.ReadStep(Purpose::kTrain, 8)[0].problem_name));
  EXPECT_EQ(metrics["fake/metric"], 2.5);
  // Two trajectories a problem, four of five problems, each drawn once.
  std::map<uint32_t, int> drawn;
  for (const TrajectoryRecord& trajectory : trajectories) ++drawn[trajectory.problem];
  EXPECT_EQ(drawn.size(), 4u);
  for (const auto& [problem, count] : drawn) EXPECT_EQ(count, 2);
}

TEST_F(RunTest, ProblemsComeInEpochsOverStagesAndResume) {
  PipelineConfig config = fakes::Config(Folder("epochs"), 2, 3);
  config.stages = {config.stages[1], config.stages[0], config.stages[1]};
  config.stages[2].steps = 2;
  knobs().cancel_after_updates = 2;
  EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
  fakes::Reset();
  EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  std::map<uint32_t, int> trajectories;
  for (const uint64_t step : {1, 2, 3, 6, 7}) {
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step))
      ++trajectories[trajectory.problem];
  }
  // Five rollouts draw four of five problems each: four epochs, with two trajectories for each draw.
  EXPECT_THAT(trajectories, ::testing::ElementsAre(::testing::Pair(0, 8), ::testing::Pair(1, 8), ::testing::Pair(2, 8),
                                                   ::testing::Pair(3, 8), ::testing::Pair(4, 8)));
}

TEST_F(RunTest, StateFollowsTheRounds) {
  const PipelineConfig config = fakes::Config(Folder("state"), 0, 4);
  RunIn(config);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t wrong = 0;
  for (uint64_t step = 1; step <= 4; ++step) {
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
      std::string a = "// kernel of " + trajectory.problem_name + "\n", b = a;
      for (const RoundRecord& round : trajectory.rounds_done) {
        EXPECT_EQ(round.code_a, a);
        EXPECT_EQ(round.code_b, b);
        if (!round.evaluation) {
          EXPECT_FALSE(round.applied);
          continue;
        }
        wrong += round.evaluation->correct ? 0 : 1;
        EXPECT_TRUE(round.applied);  // correct or wrong: `advance: always`
        a = b;
        b = round.answer.source;
        const double speedup = round.evaluation->correct ? 1e-3 / round.evaluation->seconds : 0;
        EXPECT_DOUBLE_EQ(round.speedup, speedup);
      }
    }
  }
  EXPECT_GT(wrong, 0u);
}

TEST_F(RunTest, AdvanceCorrectKeepsTheLastCorrectKernel) {
  PipelineConfig config = fakes::Config(Folder("advance"), 0, 4);
  config.loop.advance = Advance::kCorrect;
  RunIn(config);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t wrong = 0;
  for (uint64_t step = 1; step <= 4; ++step) {
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
      std::string b = "// kernel of " + trajectory.problem_name + "\n";
      for (const RoundRecord& round : trajectory.rounds_done) {
        EXPECT_EQ(round.code_b, b);
        if (round.evaluation && round.evaluation->correct) b = round.answer.source;
        if (round.evaluation && !round.evaluation->correct) {
          ++wrong;
          EXPECT_FALSE(round.applied);
        }
      }
    }
  }
  EXPECT_GT(wrong, 0u);
}

TEST_F(RunTest, DoesNotDependOnTimingOrThreads) {
  std::string all;
  for (const uint32_t staleness : {0, 1}) {
    knobs().delay_seed = 0;
    PipelineConfig config = fakes::Config(Folder("timing_0"));
    config.loop.max_staleness = staleness;
    RunIn(config);
    const std::string samples = fakes::Samples(config.output_dir);
    const std::string weights = fakes::FinalWeights(config.output_dir);
    EXPECT_GT(samples.size(), 10000u);
    EXPECT_NE(samples, std::exchange(all, samples));
    for (const uint64_t delays : {1, 2, 3}) {
      knobs().delay_seed = delays;
      config.output_dir = Folder("timing_" + std::to_string(delays));
      config.loop.workers = static_cast<uint32_t>(1 + 2 * delays);
      config.loop.generation_batch = delays == 3 ? 0 : 4 - delays;
      RunIn(config);
      EXPECT_EQ(fakes::Samples(config.output_dir), samples) << delays;
      EXPECT_EQ(fakes::FinalWeights(config.output_dir), weights) << delays;
    }
  }
}

TEST_F(RunTest, OneSlowAnswerHoldsUpNobody) {
  for (const uint32_t staleness : {0, 1}) {
    fakes::Reset();
    PipelineConfig config = fakes::Config(Folder("slow_answer"), 0, 2);
    config.evaluation.every = 0;
    config.loop.max_staleness = staleness;
    // All rounds of the other trajectories, the first of the one that waits, and two of three of the next step.
    const int others = static_cast<int>((config.loop.batch_size - 1) * 3 + 1 + staleness * config.loop.batch_size * 2);
    knobs().first_answer_after = others;
    RunIn(config);
    EXPECT_EQ(knobs().calls_at_first_answer, others);
  }
}

TEST_F(RunTest, AnotherSeedGivesOtherSamples) {
  PipelineConfig config = fakes::Config(Folder("seed_7"));
  RunIn(config);
  const std::string samples = fakes::Samples(config.output_dir);
  config.output_dir = Folder("seed_8");
  config.seed = 8;
  RunIn(config);
  EXPECT_NE(fakes::Samples(config.output_dir), samples);
}

TEST_F(RunTest, LearnsAndTheControlsDoNot) {
  // Over 24 seeds the three gains are 1.03, 0.64 and 0.03, with standard deviations of 0.20, 0.20 and 0.41.
  constexpr uint64_t kSeeds = 9;
  const auto gain = [](const std::string& name, bool shuffle_prompts, bool shuffle_rewards) {
    PipelineConfig config = fakes::Config(Folder(name), 0, 60);
    config.checkpoint.every = 0;
    config.evaluation.every = 0;
    config.loop.rounds = 2;
    config.train_problems = {"map_a", "reduce_a", "matmul_a", "scan_a", "pool_a"};  // one a family
    config.controls.shuffle_prompts = shuffle_prompts;
    config.controls.shuffle_rewards = shuffle_rewards;
    double sum = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      config.seed = seed;
      config.output_dir = Folder(name + std::to_string(seed));
      RunIn(config);
      sum += MeanReward(config.output_dir, 51, 60) - MeanReward(config.output_dir, 1, 5);
    }
    return sum / static_cast<double>(kSeeds);
  };
  const double honest = gain("learn", false, false);
  EXPECT_GT(honest, 0.6);
  // Shuffled prompts can teach which suggestions are bad for every problem, but not which are good for one.
  EXPECT_LT(gain("learn_prompts", true, false), 0.8 * honest);
  EXPECT_LT(gain("learn_rewards", false, true), 0.3 * honest);
}

TEST_F(RunTest, DropsOrPunishesTrajectoriesWhoseCoderFailed) {
  PipelineConfig config = fakes::Config(Folder("drop"), 0, 3);
  knobs().coder_fails_every = 4;
  RunIn(config);
  RunDatabase dropped(fs::path(config.output_dir) / "run.sqlite");
  size_t gone = 0;
  for (const TrajectoryRecord& trajectory : dropped.ReadStep(Purpose::kTrain, 2)) {
    if (trajectory.dropped.empty()) {
      EXPECT_EQ(trajectory.rounds_done.size(), 3u);
      continue;
    }
    ++gone;
    EXPECT_LT(trajectory.rounds_done.size(), 3u);
    EXPECT_THAT(trajectory.dropped, HasSubstr("the line was cut"));
  }
  EXPECT_GT(gone, 0u);
  for (const Metric& metric : dropped.Metrics(2)) {
    if (metric.name == "coder/dropped_trajectories") {
      EXPECT_EQ(metric.value, static_cast<double>(gone));
    }
  }

  config.output_dir = Folder("punish");
  config.loop.on_coder_failure = CoderFailure::kPunish;
  RunIn(config);
  RunDatabase punished(fs::path(config.output_dir) / "run.sqlite");
  size_t failed = 0;
  for (const TrajectoryRecord& trajectory : punished.ReadStep(Purpose::kTrain, 2)) {
    EXPECT_EQ(trajectory.rounds_done.size(), 3u);
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (round.answer.outcome < KGRPO_CODER_REFUSED) continue;
      ++failed;
      EXPECT_EQ(round.reward, -0.75);
    }
  }
  EXPECT_GT(failed, 0u);
}

TEST_F(RunTest, ABestKernelIsJudgedAgainBeforeItCounts) {
  PipelineConfig config = fakes::Config(Folder("best"), 0, 6);
  RunIn(config);
  EXPECT_GT(knobs().thorough, 0);
  const fs::path kernels = fs::path(config.output_dir) / "kernels";
  const auto evidence = nlohmann::json::parse(ReadFile(kernels / "map_a" / "evidence.json"));
  EXPECT_GT(evidence["speedup"], 1.0);
  EXPECT_EQ(evidence["evaluation"]["verdict"], "correct");
  EXPECT_THAT(ReadFile(kernels / "map_a" / "best.cu"), HasSubstr("// kernel of map_a"));
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  EXPECT_EQ(database.ReadBest(6).at("map_a").source, ReadFile(kernels / "map_a" / "best.cu"));

  fakes::Reset();
  knobs().thorough_refutes = true;
  config.output_dir = Folder("best_refuted");
  RunIn(config);
  EXPECT_GT(knobs().thorough, 0);
  EXPECT_TRUE(fs::is_empty(fs::path(config.output_dir) / "kernels"));
}

std::vector<uint64_t> KeptCheckpoints(const PipelineConfig& config) {
  std::vector<uint64_t> kept;
  for (const CheckpointState& state : Checkpoints(fs::path(config.output_dir) / "checkpoints").List())
    kept.push_back(state.step);
  return kept;
}

// One round of one technique a step: `techniques[i]`, an index into kTechniques, is what the policy suggests in step
// i + 1, or -1 for a step in which the coder fails. The tests below count on "tile" (0) for a correct kernel and
// "overflow" (5) for one that does not compile.
std::vector<uint64_t> KeptBy(PipelineConfig config, const std::vector<int>& techniques,
                             const std::vector<std::string>& problems = {"map_a"}, uint64_t checkpoint_every = 1) {
  config.stages[0].steps = techniques.size();
  config.train_problems = problems;
  config.loop.rounds = 1;
  config.checkpoint.every = checkpoint_every;
  config.checkpoint.keep_last = 1;
  config.checkpoint.keep_best = 1;
  size_t step = 0;
  const auto play = [&] {
    const int technique = step < techniques.size() ? techniques[step] : 0;
    knobs().policy_suggests = std::max(technique, 0);
    knobs().coder_fails_every = technique < 0 ? 1 : 0;
  };
  play();
  RunIn(config, false, [&](const char* point) {
    if (std::string(point) != "database: after commit") return;
    ++step;
    play();
  });
  return KeptCheckpoints(config);
}

TEST_F(RunTest, TheBestCheckpointIsThatWhoseWeightsEarnedTheMost) {
  constexpr int kGood = 0, kBad = 5;
  // Step 1 is played by the weights before it, and its update spoils them: step 2 shows it.
  EXPECT_THAT(KeptBy(fakes::Config(Folder("keep_collapse"), 0), {kGood, kBad, kBad, kGood, kBad}),
              ::testing::ElementsAre(3, 5));
  // A step whose trajectories were all dropped has no reward, though 0 would be more than the others have.
  EXPECT_THAT(KeptBy(fakes::Config(Folder("keep_dropped"), 0), {kBad, kBad, -1, kBad}), ::testing::ElementsAre(1, 4));
  // Where each checkpoint is measured on held-out problems, those rewards count.
  PipelineConfig measured = fakes::Config(Folder("keep_measured"), 0);
  measured.evaluation.every = 1;
  EXPECT_THAT(KeptBy(measured, {kBad, kGood, kBad, kBad}), ::testing::ElementsAre(2, 4));
}

// Steps draw the two problems in turns. On one every kernel is good, on the other only that of one step.
TEST_F(RunTest, ACheckpointIsComparedOnTheProblemsOfItsStep) {
  constexpr int kGood = 0, kBad = 5;
  PipelineConfig config = fakes::Config(Folder("keep_compared"), 0);
  config.loop.batch_size = config.loop.trajectories_per_problem = 2;
  const std::vector<std::string> families = {"map", "reduce"};
  std::vector<int> techniques;
  std::vector<uint64_t> hard_steps;
  for (uint64_t draw = 0; draw < 12; ++draw) {
    const bool hard = DrawAssignments(config.seed, Purpose::kTrain, 0, draw, 2, 2, families, false)[0].problem == 1;
    if (hard) hard_steps.push_back(draw + 1);
    techniques.push_back(hard && hard_steps.size() != 4 ? kBad : kGood);
  }
  ASSERT_EQ(hard_steps.size(), 6U);
  const auto kept = KeptBy(config, techniques, {"map_a", "reduce_a"});
  EXPECT_THAT(kept, ::testing::ElementsAre(hard_steps[3] - 1, 12));
}

TEST_F(RunTest, TheFinalModelIsTheBestWhereAskedFor) {
  PipelineConfig config = fakes::Config(Folder("final_best"), 0);
  config.evaluation.every = 1;
  config.checkpoint.final_best = true;
  EXPECT_THAT(KeptBy(config, {5, 0, 5, 5}), ::testing::ElementsAre(2, 4));
  const auto bytes = [&](const char* model) { return ReadFile(fs::path(config.output_dir) / model / "table.bin"); };
  EXPECT_EQ(bytes("final"), bytes("checkpoints/step-2/policy"));
  EXPECT_NE(bytes("final"), bytes("checkpoints/step-4/policy"));

  EXPECT_EQ(FinalText(config, {2, 0, false, true, 1.5, 0.25}),
            "final/ is the policy of step 2 (stage 1, fake_climber), which is the best kept checkpoint: held-out "
            "reward 1.500; the last policy's is 0.250");
  EXPECT_EQ(FinalText(config, {4, 0, true, false, std::nullopt, std::nullopt}),
            "final/ is the last policy: no kept checkpoint has a reward to choose it by");
  config.checkpoint.final_best = false;
  EXPECT_EQ(FinalText(config, {4, 0, true, true, 1.5, 1.5}), "");
}

// The policy that the run began with is measured, saved and told to observers as those of later steps are.
TEST_F(RunTest, TheStartIsACandidateForTheBest) {
  PipelineConfig config = fakes::Config(Folder("best_start"), 0);
  config.evaluation.every = 1;
  config.evaluation.at_start = true;
  config.checkpoint.final_best = true;
  EXPECT_THAT(KeptBy(config, {0, 5, 5, 5}), ::testing::ElementsAre(0, 4));
  const auto bytes = [&](const char* model) { return ReadFile(fs::path(config.output_dir) / model / "table.bin"); };
  EXPECT_EQ(bytes("final"), bytes("checkpoints/step-0/policy"));
  EXPECT_NE(bytes("final"), bytes("checkpoints/step-4/policy"));
  EXPECT_THAT(FinalText(config, {0, 0, false, true, 0.25, -0.25}), HasSubstr("the policy that the run began with"));
}

std::vector<std::string> Warnings(const PipelineConfig& config) {
  Findings findings;
  CheckFile(config, &findings);
  return findings.notes;
}

TEST_F(RunTest, ABestFinalModelThatCannotBeFoundIsWarnedOf) {
  PipelineConfig config = fakes::Config(Folder("final_warnings"));
  EXPECT_THAT(Warnings(config), ::testing::IsEmpty());
  config.checkpoint.final_best = true;
  EXPECT_THAT(Warnings(config), ::testing::ElementsAre(HasSubstr("checkpoint.every (3) is not a multiple of "
                                                                 "evaluation.every (4)")));
  config.checkpoint.every = 8;
  EXPECT_THAT(Warnings(config), ::testing::IsEmpty());
  config.checkpoint.keep_best = 0;
  EXPECT_THAT(Warnings(config), ::testing::ElementsAre(HasSubstr("checkpoint.keep_best is 0")));
}

TEST_F(RunTest, ARunStopsOnceTheHeldoutRewardNoLongerRises) {
  PipelineConfig config = fakes::Config(Folder("patience"), 0);
  config.evaluation.every = 1;
  config.evaluation.patience = 2;
  EXPECT_THAT(KeptBy(config, {5, 0, 5, 5, 5, 5}), ::testing::ElementsAre(2, 4))
      << "the best is 2; 3 and 4 are not better";
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  EXPECT_EQ(database.Steps().size(), 4U);
  EXPECT_TRUE(database.Get("finished"));
  EXPECT_THAT(database.Get(kEndedEarly).value_or(""), HasSubstr("after step 4 of 6: "));
}

TEST_F(RunTest, ARunThatStopsBeforeItsFirstCheckpointWritesOne) {
  PipelineConfig config = fakes::Config(Folder("patience_first"), 0);
  config.evaluation.every = 1;
  config.evaluation.patience = 2;
  EXPECT_THAT(KeptBy(config, {5, 0, 5, 5, 5, 5}, {"map_a"}, 10), ::testing::ElementsAre(4));
  EXPECT_TRUE(RunDatabase(fs::path(config.output_dir) / "run.sqlite").Get("finished"));
}

TEST_F(RunTest, AnEvaluationAtTheStartGivesALongIntervalAnEffect) {
  PipelineConfig config = fakes::Config(Folder("interval"));
  config.evaluation.every = 100;
  EXPECT_EQ(Warnings(config).size(), 1U);
  config.evaluation.at_start = true;
  EXPECT_EQ(Warnings(config).size(), 0U);
}

TEST_F(RunTest, HeldoutEpisodesArePlayedBeforeEachStageAndGreedily) {
  PipelineConfig config = fakes::Config(Folder("at_start"));
  config.evaluation.at_start = config.evaluation.greedy = true;
  std::ostringstream out;
  Console console(out, false);
  RunIn(config, false, {}, &console);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  EXPECT_THAT(database.StepsWithRounds(Purpose::kHeldout), ::testing::ElementsAre(0, 3, 4, 8));
  EXPECT_THAT(database.StepsWithRounds(Purpose::kGreedy), ::testing::ElementsAre(0, 3, 4, 8));
  EXPECT_EQ(database.ReadStep(Purpose::kGreedy, 8).size(), 3U) << "one of each problem";
  EXPECT_EQ(database.MetricCurve("heldout/greedy_reward").size(), 4U);
  EXPECT_THAT(out.str(), ::testing::ContainsRegex("held-out after step 8: reward .*  greedy [-0-9.]+\n"));
  // Nothing of it changes what is learned.
  const std::string weights = fakes::FinalWeights(config.output_dir);
  fakes::Reset();
  const PipelineConfig plain = fakes::Config(Folder("at_start_not"));
  RunIn(plain);
  EXPECT_EQ(fakes::FinalWeights(plain.output_dir), weights);
}

TEST_F(RunTest, AResumedRunKeepsTheBestCheckpoint) {
  PipelineConfig config = fakes::Config(Folder("keep"), 0, 12);
  config.checkpoint.every = 1;
  config.checkpoint.keep_last = 2;
  config.evaluation.every = 0;
  knobs().cancel_after_updates = 6;
  EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
  fakes::Reset();
  RunIn(config, true);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  std::pair<double, uint64_t> best = {-1e9, 0};  // the last step has no rollouts after it
  for (const StepSummary& step : database.Steps()) {
    if (step.step > 1 && *step.reward_mean > best.first) best = {*step.reward_mean, step.step - 1};
  }
  std::set<uint64_t> kept = {best.second, 11, 12};
  EXPECT_THAT(KeptCheckpoints(config), ::testing::ElementsAreArray(kept));
}

TEST_F(RunTest, TheConsoleShowsALineAStepAndASummary) {
  std::ostringstream out;
  Console console(out, false);
  RunIn(fakes::Config(Folder("console")), false, {}, &console);
  const std::string text = out.str();
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("MODELLED, no device ran: table"));
  EXPECT_THAT(text, HasSubstr("a table of speedups,"));
  EXPECT_THAT(text, HasSubstr("  fake_climber  reward "));
  EXPECT_THAT(text, HasSubstr("  fake_imitation  loss "));
  EXPECT_THAT(text, HasSubstr("held-out after step 8: reward "));
  EXPECT_THAT(text, ::testing::ContainsRegex("mean reward: [-0-9.]+ in the first step, [-0-9.]+ in the last  "));
  EXPECT_THAT(text, HasSubstr("favourite suggestion"));
  EXPECT_THAT(text, HasSubstr(": final/ (the trained model), kernels/ (the best verified ones), run.sqlite"));
  EXPECT_THAT(text, Not(HasSubstr("kernels/ is empty")));
  EXPECT_THAT(text, HasSubstr("next: kgrpo-host eval "));
}

}  // namespace
}  // namespace kgrpo
