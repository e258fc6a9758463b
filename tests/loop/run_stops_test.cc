// loop/run.h: runs of the fake pipeline that stop early and are resumed, or that do not start.
#include "loop/run.h"

#include "fakes.h"
#include "store/database.h"
#include "test.h"

namespace kgrpo {
namespace {

using fakes::Folder;
using fakes::knobs;
using fakes::RunIn;

class RunStopsTest : public ::testing::Test {
 protected:
  void SetUp() override { fakes::Reset(); }
};

TEST_F(RunStopsTest, StopsWithACheckpointWhenNumbersAreNotFinite) {
  const PipelineConfig config = fakes::Config(Folder("not_finite"), 0, 8);
  knobs().not_finite_at = 5;
  const RunOutcome outcome = RunIn(config);
  EXPECT_EQ(outcome.status, RunOutcome::Status::kStopped);
  EXPECT_EQ(outcome.ExitCode(), 1);
  EXPECT_EQ(outcome.steps, 4u);
  EXPECT_THAT(outcome.message, HasSubstr("the loss is not a number"));
  EXPECT_THAT(outcome.message, HasSubstr("checkpoint of step 4"));
  EXPECT_TRUE(fs::exists(fs::path(config.output_dir) / "checkpoints/step-4/state.json"));
  EXPECT_FALSE(fs::exists(fs::path(config.output_dir) / "final"));
}

// Weights that cannot generate replace none that can, and the way on that the message names is one.
TEST_F(RunStopsTest, DivergedWeightsReplaceNone) {
  const PipelineConfig config = fakes::Config(Folder("diverged"), 0, 8);  // a checkpoint every three steps
  knobs().diverges_at = 5;
  const RunOutcome outcome = RunIn(config);
  EXPECT_EQ(outcome.status, RunOutcome::Status::kStopped);
  EXPECT_THAT(outcome.message, HasSubstr("the logits are not finite"));
  EXPECT_THAT(outcome.message, HasSubstr("the last checkpoint is of step 3"));
  EXPECT_FALSE(fs::exists(fs::path(config.output_dir) / "checkpoints/step-5"));
  EXPECT_FALSE(fs::exists(fs::path(config.output_dir) / "checkpoints/step-6"));
  EXPECT_FALSE(fs::exists(fs::path(config.output_dir) / "final"));
  fakes::Reset();
  EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(knobs().updates, 5) << "from step 3";
}

TEST_F(RunStopsTest, StopsWithACheckpointWhenTheMoneyIsSpent) {
  const PipelineConfig config = fakes::Config(Folder("budget"), 0, 8);
  PipelineParts parts = fakes::Parts(config);
  RunProblems problems(config, parts);
  const RunFolder folder = RunFolder::Create(config.output_dir, config.resolved_yaml, false);
  RunOptions options;
  options.faults = [](const char* point) {
    if (std::string(point) == "database: after commit" && knobs().updates == 2) knobs().coder_error = true;
  };
  const RunOutcome outcome = kgrpo::Run(config, parts, problems, folder, options);
  EXPECT_EQ(outcome.status, RunOutcome::Status::kStopped);
  EXPECT_THAT(outcome.message, HasSubstr("the money is spent"));
  EXPECT_TRUE(fs::exists(fs::path(config.output_dir) / "checkpoints/step-2/trainer.state"));
}

class StalenessTest : public RunStopsTest, public ::testing::WithParamInterface<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Max, StalenessTest, ::testing::Values(0U, 1U));

TEST_P(StalenessTest, AUsersStopCanBeResumedToTheSameEnd) {
  PipelineConfig config = fakes::Config(Folder("cancel_whole"));
  config.loop.max_staleness = GetParam();
  RunIn(config);
  const std::string samples = fakes::Samples(config.output_dir), weights = fakes::FinalWeights(config.output_dir);
  for (const int updates : {1, 3, 5, 7, 10}) {
    fakes::Reset();
    config.output_dir = Folder("cancel_" + std::to_string(updates));
    knobs().delay_seed = GetParam();  // so that answers are outstanding
    const bool diverges = updates == 7;
    if (diverges)
      knobs().not_finite_at = updates + 1 - 3;  // of the second stage, after the step's rollout
    else
      knobs().cancel_after_updates = updates;
    const RunOutcome stopped = RunIn(config);
    EXPECT_EQ(stopped.status, diverges ? RunOutcome::Status::kStopped : RunOutcome::Status::kInterrupted);
    EXPECT_EQ(stopped.ExitCode(), diverges ? 1 : 130);
    EXPECT_EQ(stopped.steps, static_cast<uint64_t>(updates));
    const auto checkpoint = fs::path(config.output_dir) / "checkpoints" / ("step-" + std::to_string(updates));
    EXPECT_EQ(fs::exists(checkpoint / "begun_ahead.cbor"), GetParam() == 1 && updates > 3);
    fakes::Reset();
    EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished);
    EXPECT_EQ(knobs().updates, 11 - updates);  // nothing was done twice
    EXPECT_EQ(fakes::Samples(config.output_dir), samples);
    EXPECT_EQ(fakes::FinalWeights(config.output_dir), weights);
  }
}

double CostOf(const PipelineConfig& config, uint64_t step) {
  for (const Metric& metric : RunDatabase(fs::path(config.output_dir) / "run.sqlite").Metrics(step)) {
    if (metric.name == "coder/cost_total") return metric.value;
  }
  return -1;
}

// A user's stop in the middle of a step: each answer is paid for once, and the sum of money is the same to the last
// bit.
TEST_P(StalenessTest, AnswersOfAnUnfinishedStepAreKept) {
  PipelineConfig config = fakes::Config(Folder("unfinished_whole"), 0, 6);
  config.loop.max_staleness = GetParam();
  knobs().coder_cost = 0.1;
  knobs().coder_accounts = true;
  RunIn(config);
  const std::string samples = fakes::Samples(config.output_dir);
  const int calls = knobs().coder_calls;
  const double cost = CostOf(config, 6);
  EXPECT_NEAR(cost, 0.1 * calls, 1e-9);
  for (int at = 0; at < calls; at += calls / 5) {  // 0: an update fails, after all answers of its step
    fakes::Reset();
    config.output_dir = Folder("unfinished_" + std::to_string(at));
    knobs().coder_cost = 0.1;
    knobs().coder_accounts = true;
    knobs().cancel_after_calls = at;
    knobs().not_finite_at = at == 0 ? 4 : 0;
    EXPECT_EQ(RunIn(config).status, at == 0 ? RunOutcome::Status::kStopped : RunOutcome::Status::kInterrupted) << at;
    knobs().cancelled = false;
    knobs().not_finite_at = 0;
    knobs().cancel_after_calls = 0;
    knobs().coder_paid = 0;  // another process
    EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished) << at;
    EXPECT_EQ(knobs().coder_calls, calls) << at;
    EXPECT_EQ(fakes::Samples(config.output_dir), samples) << at;
    EXPECT_EQ(CostOf(config, 6), cost) << at;
  }
}

// Checkpoints that a full disk has no room for: the first failure is told with the way on, and half of none is left.
TEST_F(RunStopsTest, AFullDiskLeavesTheWayOn) {
  const PipelineConfig config = fakes::Config(Folder("full_disk"), 0, 8);  // a checkpoint every three steps
  std::string told;
  try {
    RunIn(config, false, [](const char* point) {
      if (std::string(point) == "checkpoint: policy written" && knobs().updates == 6)
        throw Error(KGRPO_ERROR_UNAVAILABLE, "No space left on device");
    });
  } catch (const Error& error) {
    told = error.what();
  }
  EXPECT_THAT(told,
              HasSubstr("No space left on device (no checkpoint of step 6 could be written; the last checkpoint is "
                        "of step 3; fix the cause, then: kgrpo-host resume "));
  EXPECT_FALSE(fs::exists(fs::path(config.output_dir) / "checkpoints/step-6.partial"));
  EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished);
}

TEST_F(RunStopsTest, ReplayedStepsAskTheCoderNothingTwice) {
  // A coder that never answers the same: only recorded answers can give the same samples again.
  knobs().coder_counts = true;
  const PipelineConfig config = fakes::Config(Folder("replay"), 0, 6);
  struct Killed {};
  EXPECT_THROW(RunIn(config, false,
                     [](const char* point) {
                       if (std::string(point) == "checkpoint: filled" && knobs().updates == 6) throw Killed();
                     }),
               Killed);  // steps 4 to 6 are in the database, the last checkpoint is of step 3
  const std::string samples = fakes::Samples(config.output_dir);
  knobs().coder_calls = knobs().updates = knobs().evaluations = 0;
  EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(knobs().updates, 3);
  EXPECT_EQ(knobs().coder_calls, 0);
  EXPECT_EQ(knobs().evaluations, 0);
  EXPECT_EQ(fakes::Samples(config.output_dir), samples);
}

TEST_F(RunStopsTest, AUsersStopDuringTheLastJudgingLosesNoKernel) {
  const auto best_of = [](const PipelineConfig& config) {
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    std::map<std::string, std::string> sources;
    for (const auto& [problem, kernel] : database.ReadBest(6)) sources[problem] = kernel.source;
    return sources;
  };
  PipelineConfig config = fakes::Config(Folder("judging_whole"), 0, 6);
  config.checkpoint.every = 0;  // judged at the end alone
  RunIn(config);
  const std::map<std::string, std::string> whole = best_of(config);
  ASSERT_FALSE(whole.empty());

  fakes::Reset();
  config.output_dir = Folder("judging_stopped");
  knobs().cancel_in_thorough = true;
  EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
  EXPECT_FALSE(fs::exists(fs::path(config.output_dir) / "final"));
  fakes::Reset();
  EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(knobs().updates, 0);  // the steps were done
  EXPECT_EQ(best_of(config), whole);
  EXPECT_TRUE(fs::exists(fs::path(config.output_dir) / "kernels/map_a/best.cu"));
}

TEST_F(RunStopsTest, SaysWhatIsWrongWithTheConfiguration) {
  const auto message = [](const PipelineConfig& config) -> std::string {
    return test::MessageOf(
        [&] {
          PipelineParts parts = fakes::Parts(config);
          RunProblems problems(config, parts);
          const RunFolder folder = RunFolder::Create(Folder("bad"), "", false);
          kgrpo::Run(config, parts, problems, folder, {});
        },
        0, "");
  };
  PipelineConfig config = fakes::Config("");
  config.train_problems = {"map_a", "x/map_a"};
  EXPECT_THAT(message(config), HasSubstr("two problems are named map_a"));
  config = fakes::Config("");
  config.train_problems = {"map_broken"};
  EXPECT_THAT(message(config),
              HasSubstr("the reference kernel of problem map_broken (map_broken) is not correct (wrong)"));
  config = fakes::Config("");
  config.stages[0].episodes = 0;
  EXPECT_THAT(message(config), HasSubstr("`episodes` is 0"));
  config = fakes::Config("");
  config.prompt.user = "{{problem.nmae}}";
  EXPECT_THAT(message(config),
              HasSubstr("prompt.user:1:1: unknown variable \"problem.nmae\"; did you mean \"problem.name\"?"));
}

// Every sample has the reward of its group, so no gradient says anything.
TEST_F(RunStopsTest, ARunWhoseAdvantagesAreAll0EndsAsAFailure) {
  PipelineConfig config = fakes::Config(Folder("no_advantage"), 0, 3);
  config.loop.rounds = 1;
  knobs().policy_suggests = 5;  // compiles nowhere: each reward is -1
  std::ostringstream out;
  Console console(out, false);
  RunOutcome outcome = RunIn(config, false, {}, &console);
  EXPECT_EQ(outcome.status, RunOutcome::Status::kNothingLearned);
  EXPECT_EQ(outcome.ExitCode(), 1);
  EXPECT_EQ(knobs().updates, 3);
  const std::string words =
      "nothing was learned: in each of the 3 steps with samples every advantage was 0 (each group had one sample or "
      "equal returns, or each sample was masked or its return cut)";
  EXPECT_EQ(outcome.message,
            words + ". Fix the cause: resume with --from-step N and --set, or run again with --overwrite");
  EXPECT_THAT(out.str(), HasSubstr(words + "\n"));
  EXPECT_THAT(out.str(), HasSubstr("final/ (a stage learned nothing, see above)"));
  EXPECT_THAT(out.str(), Not(HasSubstr("next: ")));

  // One step with a signal is enough.
  config.output_dir = Folder("one_advantage");
  fakes::Reset();
  knobs().policy_suggests = 5;
  outcome = RunIn(config, false, [](const char* point) {
    if (std::string(point) == "database: after commit") knobs().policy_suggests = knobs().updates == 1 ? -1 : 5;
  });
  EXPECT_EQ(outcome.status, RunOutcome::Status::kFinished) << outcome.message;
}

TEST_F(RunStopsTest, LeavesOutProblemsWithoutAUsableReferenceWhereTheFileAllowsIt) {
  PipelineConfig config = fakes::Config(Folder("skip"), 1, 2);
  config.train_problems.insert(config.train_problems.begin(), {"a_broken", "a_unreferenced"});
  config.heldout_problems.emplace_back("z_broken");
  config.skip_unusable = true;
  std::ostringstream out;
  Console console(out, false);
  EXPECT_EQ(RunIn(config, false, {}, &console).status, RunOutcome::Status::kFinished);
  EXPECT_THAT(out.str(), HasSubstr("left out (problems.skip_unusable): the reference kernel of problem a_broken "
                                   "(a_broken) is not correct (wrong)"));
  EXPECT_THAT(out.str(), HasSubstr("left out (problems.skip_unusable): a_unreferenced has no reference kernel"));
  EXPECT_THAT(out.str(), HasSubstr("left out (problems.skip_unusable): the reference kernel of problem z_broken"));
  PipelineConfig without = fakes::Config(Folder("skip_without"), 1, 2);
  RunIn(without);
  EXPECT_EQ(fakes::Samples(config.output_dir), fakes::Samples(without.output_dir)) << "as if they were not listed";
}

TEST_F(RunStopsTest, AtLeastOneProblemMustBeUsable) {
  PipelineConfig config = fakes::Config("");
  config.train_problems = {"a_broken", "b_broken"};
  config.skip_unusable = true;
  PipelineParts parts = fakes::Parts(config);
  try {
    RunProblems problems(config, parts);
    FAIL() << "a run without problems";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("none of the 2 problems can be used; of the first: the reference kernel of "
                                        "problem a_broken"));
  }
  config.train_problems = {"map_a", "map_missing"};
  EXPECT_THROW(RunProblems(config, parts), Error) << "a folder that is no problem is a mistake, not left out";
}

TEST_F(RunStopsTest, HeldoutEpisodesThatAStopSkippedArePlayedByTheResumedRun) {
  for (const int stopped_after : {5, 11}) {  // 11: the last step
    PipelineConfig config = fakes::Config(Folder("heldout_whole"));
    config.evaluation.every = 1;
    EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kFinished);
    const std::string whole = fakes::Samples(config.output_dir);
    fakes::Reset();
    knobs().cancel_after_updates = stopped_after;
    config.output_dir = Folder("heldout_stopped");
    EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
    EXPECT_NE(fakes::Samples(config.output_dir), whole);
    fakes::Reset();
    EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished);
    EXPECT_EQ(fakes::Samples(config.output_dir), whole);
    fakes::Reset();
  }
}

TEST_F(RunStopsTest, AResumedRunNeedsTheProblemsThatItBeganWith) {
  PipelineConfig config = fakes::Config(Folder("skip_resume"), 1, 4);
  config.train_problems.emplace_back("z_broken");
  config.skip_unusable = true;
  knobs().cancel_after_updates = 2;
  EXPECT_EQ(RunIn(config).status, RunOutcome::Status::kInterrupted);
  fakes::Reset();
  PipelineConfig changed = config;
  changed.train_problems.back() = "z_works";  // as if its reference were correct on this machine
  EXPECT_THAT(test::MessageOf([&] { RunIn(changed, true); }),
              HasSubstr("the training problems differ from those that this run began with: z_works was "
                        "left out before."));
  EXPECT_EQ(RunIn(config, true).status, RunOutcome::Status::kFinished);
}

TEST_F(RunStopsTest, RefusesAFolderThatIsNotEmpty) {
  const PipelineConfig config = fakes::Config(Folder("refuse"));
  const auto refusal = [&](const std::string& yaml) -> std::string {
    return test::MessageOf([&] { RunFolder::Create(config.output_dir, yaml, false); }, 0, "");
  };
  knobs().cancel_after_updates = 4;
  RunIn(config);
  EXPECT_THAT(refusal(config.resolved_yaml), HasSubstr("unfinished run of this configuration (4 steps done)"));
  EXPECT_THAT(refusal(config.resolved_yaml), HasSubstr("kgrpo-host resume " + config.output_dir));
  EXPECT_THAT(refusal("name: other\n"), HasSubstr("unfinished run of another configuration"));
  fakes::Reset();
  RunIn(config, true);
  EXPECT_THAT(refusal(config.resolved_yaml), HasSubstr("holds a finished run"));
  std::ofstream(fs::path(config.output_dir) / "thesis.txt") << "mine";
  RunFolder::Create(config.output_dir, config.resolved_yaml, true);
  EXPECT_TRUE(fs::exists(fs::path(config.output_dir) / "thesis.txt"));  // only what a run left behind goes
  EXPECT_FALSE(fs::exists(fs::path(config.output_dir) / "final"));
  const fs::path strange = Folder("strange");
  fs::create_directories(strange);
  std::ofstream(strange / "thesis.txt") << "mine";
  EXPECT_THROW(RunFolder::Create(strange, "", true), Error);  // --overwrite deletes runs, nothing else
  EXPECT_TRUE(fs::exists(strange / "thesis.txt"));
}

TEST_F(RunStopsTest, OneProcessAFolder) {
  const PipelineConfig config = fakes::Config(Folder("lock"));
  RunIn(config);
  const RunFolder first = RunFolder::Open(config.output_dir);
  EXPECT_THROW(RunFolder::Open(config.output_dir), Error);
}

}  // namespace
}  // namespace kgrpo
