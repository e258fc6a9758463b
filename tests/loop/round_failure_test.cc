// Runs with a coder that costs money and fails, or with an evaluator or a reward that fails: every answer is counted by
// kind and in dollars, including answers of dropped trajectories, and a resumed run repeats the recorded figures.
#include "compare/rescore.h"
#include "compare/run_measures.h"
#include "fakes.h"
#include "loop/coder_cost.h"
#include "loop/metrics.h"
#include "loop/round_faults.h"
#include "loop/run.h"
#include "loop/trajectory.h"  // ForEachAnswer
#include "store/database.h"
#include "test.h"

#include <stdexcept>

namespace kgrpo {
namespace {

using fakes::knobs;

class RoundFailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fakes::Reset();
    knobs().coder_fails_every = 4;
    knobs().coder_cost = 0.25;
  }
};

std::map<std::string, double> Metrics(RunDatabase& database, uint64_t step) {
  std::map<std::string, double> metrics;
  for (const Metric& metric : database.Metrics(step)) metrics[metric.name] = metric.value;
  return metrics;
}

TEST_F(RoundFailureTest, EveryAnswerIsPaidForAndCounted) {
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_failures"));
  std::ostringstream out;
  Console console(out, false);
  fakes::RunIn(config, false, {}, &console);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  const CoderTotals totals = database.ReadCoderTotals(11);
  EXPECT_EQ(totals.answers, static_cast<uint64_t>(knobs().coder_calls));
  EXPECT_DOUBLE_EQ(totals.cost, 0.25 * knobs().coder_calls);
  EXPECT_EQ(totals.tokens, 250u * static_cast<uint64_t>(knobs().coder_calls));
  EXPECT_GT(totals.errors, totals.answers / 8);
  EXPECT_LT(totals.errors, totals.answers / 2);
  EXPECT_DOUBLE_EQ(Metrics(database, 11)["coder/cost_total"], totals.cost);
  // Demonstrations are paid for before the first step.
  EXPECT_GT(database.ReadCoderTotals(0).answers, 6u);
  EXPECT_DOUBLE_EQ(Metrics(database, 3)["coder/cost_total"], database.ReadCoderTotals(0).cost);

  bool several_kinds = false;
  for (uint64_t step = 4; step <= 11; ++step) {
    std::map<std::string, double> metrics = Metrics(database, step);
    double kinds = 0, most = 0;
    for (const char* kind : {"refused", "truncated", "no_code", "failed"}) {
      const double share = metrics.at(std::string("coder/error_rate/") + kind);
      kinds += share;
      most = std::max(most, share);
    }
    EXPECT_NEAR(kinds, metrics["coder/error_rate"], 1e-12);
    several_kinds = several_kinds || most < kinds;
    size_t answers = 0;
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
      answers += trajectory.rounds_done.size() + (trajectory.failed_round ? 1 : 0);
      EXPECT_EQ(trajectory.failed_round.has_value(), !trajectory.dropped.empty());
    }
    EXPECT_DOUBLE_EQ(metrics["coder/cost"], 0.25 * static_cast<double>(answers));
    EXPECT_EQ(metrics["coder/tokens"], 250.0 * static_cast<double>(answers));
  }
  EXPECT_TRUE(several_kinds);
  char cost[64];
  std::snprintf(cost, sizeof cost, "the coder cost $%.2f: ", totals.cost);
  EXPECT_THAT(out.str(), HasSubstr(cost));
  EXPECT_THAT(out.str(), HasSubstr("  coder errors "));
  EXPECT_THAT(out.str(), HasSubstr("the coder failed in " + std::to_string(totals.errors)));
}

// What a coder left out is not the failure of the suggestion.
TEST_F(RoundFailureTest, AWrongKernelThatItsCoderDoubtsIsTheCodersFailure) {
  knobs().coder_fails_every = 0;
  knobs().coder_doubts = true;
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_doubts"));
  fakes::RunIn(config);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t correct = 0, blamed = 0;
  for (uint64_t step = 4; step <= 11; ++step) {
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
      for (const RoundRecord& round : trajectory.rounds_done) {
        if (round.answer.outcome != KGRPO_CODER_OK) continue;
        EXPECT_TRUE(round.evaluation && round.evaluation->correct);
        ++correct;
      }
      if (!trajectory.failed_round) continue;
      EXPECT_EQ(trajectory.failed_round->answer.outcome, KGRPO_CODER_NO_CODE);
      EXPECT_THAT(trajectory.failed_round->answer.message, HasSubstr("left out: // ..."));
      ++blamed;
    }
  }
  EXPECT_GT(correct, 0u);
  EXPECT_GT(blamed, 0u);
}

// It must not look like a success: neither on the screen nor to a script.
TEST_F(RoundFailureTest, ARunWithoutASampleEndsAsAFailure) {
  knobs().coder_fails_every = 1;
  std::ostringstream out;
  Console console(out, false);
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_all_failed"), 0, 2);
  const RunOutcome outcome = fakes::RunIn(config, false, {}, &console);
  EXPECT_EQ(outcome.status, RunOutcome::Status::kNothingLearned);
  EXPECT_EQ(outcome.ExitCode(), 1);
  EXPECT_EQ(outcome.steps, 2u);
  EXPECT_THAT(outcome.message,
              testing::ContainsRegex("^nothing was learned: in no step was a sample left to train on; of the coder's "
                                     "failures the commonest, [0-9]+ times, is [a-z_]+: the line was cut\\. Fix the "
                                     "cause: resume with --from-step N and --set, or run again with --overwrite"));
  EXPECT_THAT(out.str(), testing::ContainsRegex("; the commonest, [0-9]+ times, is [a-z_]+: the line was cut"));
  EXPECT_THAT(out.str(), HasSubstr("nothing was learned: in no step was a sample left to train on"));
  EXPECT_THAT(out.str(), HasSubstr(": final/ (a stage learned nothing, see above), run.sqlite; kernels/ is "
                                   "empty: no candidate was both correct and faster than its reference\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("next: ")));
  EXPECT_TRUE(fs::exists(fs::path(config.output_dir) / "final"));
  EXPECT_EQ(fakes::RunIn(config, true).ExitCode(), 1);  // nor later
}

// What an earlier stage has learned does not hide it.
TEST_F(RoundFailureTest, AStageWithoutASampleEndsTheRunAsAFailure) {
  knobs().coder_fails_every = 0;
  std::ostringstream out;
  Console console(out, false);
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_failed_later"), 3, 2);
  const RunOutcome outcome = fakes::RunIn(
      config, false,
      [](const char* point) {
        if (std::string(point) == "database: after commit" && knobs().updates == 3) knobs().coder_fails_every = 1;
      },
      &console);
  EXPECT_EQ(knobs().updates, 3);
  EXPECT_EQ(outcome.status, RunOutcome::Status::kNothingLearned);
  EXPECT_THAT(outcome.message, testing::StartsWith("nothing was learned in stage 2 (fake_climber): in no step was a "
                                                   "sample left to train on; of the coder's failures "));
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  EXPECT_FALSE(database.Steps().back().reward_mean) << "a step without samples has no reward";
}

TEST_F(RoundFailureTest, ReusedAnswersAreCountedAndSaid) {
  knobs().coder_reuses_every = 3;
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_reused"));
  std::ostringstream out;
  Console console(out, false);
  fakes::RunIn(config, false, {}, &console);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  const CoderTotals totals = database.ReadCoderTotals(11);
  EXPECT_GT(totals.reused, totals.answers / 6);
  EXPECT_LT(totals.reused, totals.answers / 2);
  CoderCounts counts;
  size_t dropped = 0;
  for (uint64_t step = 1; step <= 11; ++step) {
    for (const Purpose purpose : {Purpose::kTrain, Purpose::kDemonstration, Purpose::kHeldout}) {
      const std::vector<TrajectoryRecord> trajectories = database.ReadStep(purpose, step);
      ForEachAnswer(trajectories, [&](const CoderAnswer& answer) {
        ++counts.answers;
        counts.reused += answer.reused ? 1 : 0;
      });
      for (const TrajectoryRecord& trajectory : trajectories)
        dropped += trajectory.failed_round && trajectory.failed_round->answer.reused ? 1 : 0;
    }
  }
  EXPECT_EQ(counts.answers, totals.answers);
  EXPECT_EQ(counts.reused, totals.reused);
  EXPECT_GT(dropped, 0u);
  EXPECT_THAT(out.str(),
              HasSubstr(" answers; " + std::to_string(totals.reused) + " of " + std::to_string(totals.answers) +
                        " answers came from a recording or a cache, and nothing was paid for them"));
  // Without a price for the others.
  fakes::Reset();
  knobs().coder_reuses_every = 3;
  out.str("");
  fakes::RunIn(fakes::Config(fakes::Folder("coder_reused_unpriced"), 0, 2), false, {}, &console);
  EXPECT_THAT(out.str(), testing::ContainsRegex("the coder: [0-9]+ of [0-9]+ answers came from a recording or a cache, "
                                                "and nothing was paid for them; it reported no cost for the others"));
}

TEST_F(RoundFailureTest, WhatADroppedRoundWasIsKept) {
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_dropped"), 0, 2);
  fakes::RunIn(config);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t dropped = 0;
  for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, 2)) {
    if (!trajectory.failed_round) continue;
    ++dropped;
    const RoundRecord& round = *trajectory.failed_round;
    EXPECT_EQ(round.round, trajectory.rounds_done.size());
    EXPECT_THAT(fakes::kTechniques, testing::Contains(round.suggestion));
    EXPECT_EQ(round.completion_ids.size(), 2u);
    EXPECT_THAT(round.code_b, HasSubstr("// kernel of " + trajectory.problem_name));
    EXPECT_GE(round.answer.outcome, KGRPO_CODER_REFUSED);
    EXPECT_EQ(round.answer.message, "the line was cut");
    EXPECT_EQ(round.answer.cost, 0.25);
    EXPECT_EQ(round.answer.attempts, 1u);
  }
  EXPECT_GT(dropped, 0u);
}

TEST_F(RoundFailureTest, PunishedRoundsStayAndCount) {
  PipelineConfig config = fakes::Config(fakes::Folder("coder_punished"), 0, 2);
  config.loop.on_coder_failure = CoderFailure::kPunish;
  fakes::RunIn(config);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t failed = 0;
  for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, 2)) {
    EXPECT_FALSE(trajectory.failed_round);
    EXPECT_EQ(trajectory.rounds_done.size(), 3u);
    for (const RoundRecord& round : trajectory.rounds_done)
      failed += round.answer.outcome >= KGRPO_CODER_REFUSED ? 1 : 0;
  }
  EXPECT_GT(failed, 0u);
  EXPECT_DOUBLE_EQ(Metrics(database, 2)["coder/error_rate"], static_cast<double>(failed) / 24);
}

// A policy that writes the kernels learns from a completion without one, whatever happens to failures of the coder.
TEST_F(RoundFailureTest, ACompletionWithoutAKernelIsThePolicysFailure) {
  knobs().policy_fails = true;
  PipelineConfig config = fakes::Config(fakes::Folder("policy_failures"), 0, 2);
  config.prompt.user = "{{problem.family}} {{#last}}{{outcome}}: {{diagnosis}}{{/last}}";
  std::ostringstream out;
  Console console(out, false);
  fakes::RunIn(config, false, {}, &console);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t failed = 0, prompted = 0;
  for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, 2)) {
    EXPECT_FALSE(trajectory.failed_round);
    ASSERT_EQ(trajectory.rounds_done.size(), 3u);
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (round.round > 0 && trajectory.rounds_done[round.round - 1].answer.outcome == KGRPO_CODER_NO_KERNEL) {
        EXPECT_THAT(round.messages.back().content, HasSubstr("no kernel: the line was cut"));
        EXPECT_EQ(round.code_b, trajectory.rounds_done[round.round - 1].code_b) << "the state stays";
        ++prompted;
      }
      if (round.answer.outcome != KGRPO_CODER_NO_KERNEL) continue;
      EXPECT_TRUE(round.outcome.has_value()) << "the trainer was not given it";
      ++failed;
    }
  }
  EXPECT_GT(failed, 0u);
  EXPECT_GT(prompted, 0u);
  std::map<std::string, double> metrics = Metrics(database, 2);
  EXPECT_DOUBLE_EQ(metrics.at("policy/no_kernel_rate"), static_cast<double>(failed) / 24);
  EXPECT_EQ(metrics.at("coder/error_rate"), 0);
  EXPECT_EQ(database.ReadCoderTotals(2).errors, 0u);
  EXPECT_TRUE(database.ReadRoundFaults().empty());
  EXPECT_THAT(out.str(), testing::ContainsRegex("step 2/2 .*  no kernel [0-9]+%"));
}

// The steps after the checkpoint are done again. Failures are among what is recorded of them: nobody is asked again,
// though the coder would know an answer by now.
TEST_F(RoundFailureTest, AResumedRunRepeatsFailures) {
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_resumed"), 0, 5);
  int commits = 0;
  EXPECT_THROW(fakes::RunIn(config, false,
                            [&](const char* point) {
                              if (std::string(point) == "database: after commit" && ++commits == 5)
                                throw std::runtime_error("killed");
                            }),
               std::runtime_error);
  const auto dropped = [&](uint64_t step) {
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    std::string all;
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step))
      all += trajectory.dropped + "\n";
    return all;
  };
  const std::string before = dropped(4) + dropped(5);
  ASSERT_THAT(before, HasSubstr("the line was cut"));
  const double cost = [&] {
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    return database.ReadCoderTotals(5).cost;
  }();
  knobs().coder_fails_every = 0;
  const int calls = knobs().coder_calls;
  fakes::RunIn(config, true);
  EXPECT_EQ(knobs().coder_calls, calls);
  EXPECT_EQ(dropped(4) + dropped(5), before);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  EXPECT_DOUBLE_EQ(Metrics(database, 5)["coder/cost_total"], cost);
}

// A coder that is broken from some step on, as by a limit that cuts every answer: the run does not pay for it to the
// end.
TEST_F(RoundFailureTest, ACoderThatIsOfNoUseEndsTheRunWithACheckpoint) {
  for (const CoderFailure what : {CoderFailure::kDrop, CoderFailure::kPunish}) {
    fakes::Reset();
    PipelineConfig config = fakes::Config(fakes::Folder("coder_useless"), 0, 8);
    config.loop.on_coder_failure = what;
    const bool drop = what == CoderFailure::kDrop;
    std::ostringstream out;
    Console console(out, false);
    try {
      fakes::RunIn(
          config, false,
          [](const char* point) {
            if (std::string(point) == "database: after commit" && knobs().updates == 2) knobs().coder_fails_every = 1;
          },
          &console);
      ADD_FAILURE() << "the run went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), KGRPO_ERROR_UNAVAILABLE);
      EXPECT_THAT(error.what(), HasSubstr(drop ? "step 5: the coder's last 24 answers all failed"
                                               : "step 5: the coder's last 72 answers all failed"));
      EXPECT_THAT(error.what(), HasSubstr(": the line was cut"));
      EXPECT_THAT(error.what(),
                  HasSubstr(". Nothing can be learned from them: the cause is in the coder's script, options "
                            "or service (a checkpoint of step 5 was written; fix the cause, then: "
                            "kgrpo-host resume " +
                            config.output_dir));
    }
    EXPECT_EQ(knobs().updates, drop ? 2 : 5);  // of dropped trajectories nothing is learned
    // Told at once, and once.
    EXPECT_THAT(out.str(), testing::ContainsRegex(
                               "step 3: the coder's (8|24) answers all failed; the "
                               "commonest, [0-9]+ times, is [a-z_]+: the line was cut\\. After 3 such steps in a row "
                               "the run stops\n"));
    EXPECT_THAT(out.str(), Not(HasSubstr("\nstep 4: the coder's")));
    // The failed steps are recorded and done: a resumed run asks the coder, which works again, for the others only.
    knobs().coder_fails_every = 0;
    EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    EXPECT_EQ(Metrics(database, 5)["coder/error_rate"], 1);
    EXPECT_EQ(Metrics(database, 6)["coder/error_rate"], 0);
  }
}

TEST_F(RoundFailureTest, DemonstrationsThatFailedAreAskedForAgain) {
  PipelineConfig config = fakes::Config(fakes::Folder("coder_useless_demonstrations"));
  config.stages[0].episodes = 8;
  knobs().coder_fails_every = 1;
  try {
    fakes::RunIn(config);
    ADD_FAILURE() << "the run went on";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("(no checkpoint was written yet; fix the cause, then: "
                                        "kgrpo-host resume " +
                                        config.output_dir));
  }
  knobs().coder_fails_every = 0;
  EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
}

std::vector<TrajectoryRecord> Answers(const std::vector<std::pair<kgrpo_coder_outcome, std::string>>& answers) {
  std::vector<TrajectoryRecord> trajectories(answers.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    RoundRecord round;
    round.answer.outcome = answers[i].first;
    round.answer.message = answers[i].second;
    if (i % 2 == 0) trajectories[i].rounds_done.push_back(round);
    if (i % 2 != 0) trajectories[i].failed_round = round;
  }
  return trajectories;
}

TEST_F(RoundFailureTest, OneGoodAnswerIsEnoughAndFewBadStepsAreChance) {
  RoundFaults faults;
  constexpr size_t kEnough = 3;
  const auto bad =
      Answers({{KGRPO_CODER_REFUSED, "no"}, {KGRPO_CODER_TRUNCATED, "cut"}, {KGRPO_CODER_TRUNCATED, "cut"}});
  const auto mixed = Answers({{KGRPO_CODER_REFUSED, "no"}, {KGRPO_CODER_UNCLEAR, "what?"}});
  EXPECT_THAT(faults.Add(mixed, kEnough), HasSubstr("none of the coder's 2 answers was a new kernel"));
  EXPECT_EQ(faults.Add(mixed, kEnough), "") << "once for the steps in a row";
  EXPECT_EQ(faults.Add(Answers({{KGRPO_CODER_UNCLEAR, "what?"}, {KGRPO_CODER_OK, ""}}), kEnough), "");
  for (int series = 0; series < 2; ++series) {
    EXPECT_EQ(faults.Add(bad, kEnough),
              "the coder's 3 answers all failed; the commonest, 2 times, is truncated: "
              "cut. After 3 such steps in a row the run stops");
    EXPECT_EQ(faults.Add(bad, kEnough), "");
    if (series == 0) {
      EXPECT_EQ(faults.Add(mixed, kEnough), "");
    }
  }
  EXPECT_EQ(faults.Add({}, kEnough), "");  // nobody was asked
  EXPECT_THAT(test::MessageOf([&] { faults.Add(bad, kEnough); }),
              AllOf(HasSubstr("last 9 answers"), HasSubstr("6 times, is truncated: cut.")));
}

// A stop reports the coder's own figure of the cost of calls without an answer, even if nothing was asked since.
TEST_F(RoundFailureTest, AStopTellsWhatWasPaidForNothing) {
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_lost"), 0, 8);
  const auto run = [&](bool resume) {
    PipelineParts parts = fakes::Parts(config);
    RunProblems problems(config, parts);
    const RunFolder folder =
        resume ? RunFolder::Open(config.output_dir) : RunFolder::Create(config.output_dir, config.resolved_yaml, false);
    RunOptions options;
    options.resume = resume;
    return kgrpo::Run(config, parts, problems, folder, options).message;
  };
  knobs().coder_cost = 0;
  knobs().coder_spent = 100;
  knobs().coder_lost = 60;
  knobs().cancel_after_updates = 2;
  const char* words =
      "; the coder has cost $100.00 so far, of it up to $60.00 for attempts without an answer; to continue";
  EXPECT_THAT(run(false), HasSubstr(words));
  knobs().coder_spent = knobs().coder_lost = 0;  // the resumed run's coder has asked nothing yet
  EXPECT_THAT(run(true), HasSubstr(words));      // stopped before its first step
  // The cost noted by an earlier stop, of calls that are in no step's metrics, is kept by the next.
  RunDatabase(config.output_dir / std::filesystem::path("run.sqlite")).Set("coder_cost", "130");
  for (int i = 0; i < 2; ++i) EXPECT_THAT(run(true), HasSubstr("; the coder has cost $130.00 so far"));
}

// How the evaluator or the reward fails.
struct PartFailure {
  const char* name;
  RoundPart part;
  double gives;         // the reward's score; 0: an error
  const char* message;  // what is told of it
  void Set(int every) const {
    (part == RoundPart::kReward ? knobs().reward_fails_every : knobs().evaluator_fails_every) = every;
    knobs().reward_gives = gives;
  }
};

class PartFailureTest : public ::testing::TestWithParam<PartFailure> {
 protected:
  void SetUp() override { fakes::Reset(); }
  static std::string Part() { return RoundPartName(GetParam().part); }
  static PipelineConfig Config(const std::string& name, uint64_t steps) {
    return fakes::Config(fakes::Folder(name + "_" + GetParam().name), 0, steps);
  }
};

TEST_P(PartFailureTest, EndsItsTrajectoryAndIsToldAndCounted) {
  for (const CoderFailure coder : {CoderFailure::kDrop, CoderFailure::kPunish}) {
    fakes::Reset();
    GetParam().Set(4);
    PipelineConfig config = Config("part_fails", 2);
    config.loop.on_coder_failure = coder;  // the coder's alone: no reward can punish a round that has no score
    std::ostringstream out;
    Console console(out, false);
    EXPECT_EQ(fakes::RunIn(config, false, {}, &console).status, RunOutcome::Status::kFinished);
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    std::string first;
    size_t failed = 0, scored = 0, all_failed = 0;
    for (const uint64_t step : {1, 2}) {
      size_t of_step = 0, evaluated = 0;
      for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
        EXPECT_EQ(trajectory.rounds, 3u) << "as planned";
        scored += trajectory.rounds_done.size();
        for (const RoundRecord& round : trajectory.rounds_done) {
          EXPECT_FALSE(round.failure);
          EXPECT_TRUE(std::isfinite(round.reward));
          evaluated += round.evaluation && !round.unchanged ? 1 : 0;
        }
        if (trajectory.dropped.empty()) continue;
        ++of_step;
        ASSERT_TRUE(trajectory.failed_round);
        const RoundRecord& round = *trajectory.failed_round;
        ASSERT_TRUE(round.failure);
        EXPECT_EQ(round.failure->part, GetParam().part);
        EXPECT_THAT(round.failure->message, HasSubstr(GetParam().message));
        EXPECT_EQ(round.round, trajectory.rounds_done.size());
        EXPECT_THAT(round.answer.source, HasSubstr("// " + round.suggestion)) << "the kernel is kept";
        EXPECT_EQ(round.evaluation.has_value(), GetParam().part == RoundPart::kReward);
        EXPECT_EQ(trajectory.dropped,
                  "round " + std::to_string(round.round) + ": the " + Part() + " failed: " + round.failure->message);
        if (!first.empty()) continue;
        first = "step " + std::to_string(step) + ": [0-9]+ of the " + Part() +
                "'s [0-9]+ answers failed, and their trajectories end there; the first, round " +
                std::to_string(round.round) + " of trajectory " + std::to_string(trajectory.trajectory) + " \\(" +
                trajectory.problem_name + ", kernel [0-9a-f]{12}\\): .*" + GetParam().message;
      }
      std::map<std::string, double> metrics = Metrics(database, step);
      EXPECT_EQ(metrics[Part() + "/dropped_trajectories"], static_cast<double>(of_step));
      EXPECT_EQ(metrics["coder/error_rate"], 0);
      if (GetParam().part == RoundPart::kEvaluator) {
        EXPECT_DOUBLE_EQ(metrics["evaluator/error_rate"],
                         static_cast<double>(of_step) / static_cast<double>(of_step + evaluated));
        EXPECT_EQ(metrics["reward/error_rate"], 0);
      }
      failed += of_step;
      all_failed += of_step == 8 ? 1 : 0;
    }
    EXPECT_GT(failed, 0u);
    EXPECT_GT(scored, 0u);
    ASSERT_EQ(all_failed, 0u);
    EXPECT_THAT(out.str(), testing::ContainsRegex(first));
    EXPECT_THAT(out.str(), HasSubstr("  " + Part() + " errors "));
    EXPECT_THAT(out.str(), HasSubstr("the " + Part() + " failed in " + std::to_string(failed) +
                                     " rounds, where their trajectories ended; the commonest, " +
                                     std::to_string(failed) + " times: "));
  }
}

TEST_P(PartFailureTest, ThreeStepsOfFailuresEndTheRunWithACheckpoint) {
  const PipelineConfig config = Config("part_gone", 10);
  std::ostringstream out;
  Console console(out, false);
  const auto breaks = [](const char* point) {
    if (std::string(point) == "database: after commit" && knobs().updates == 2) GetParam().Set(1);
  };
  try {
    fakes::RunIn(config, false, breaks, &console);
    ADD_FAILURE() << "the run went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_UNAVAILABLE);  // exit code 4
    EXPECT_THAT(error.what(),
                testing::ContainsRegex("step 5: the " + Part() + "'s last 2[0-9] answers all failed; the commonest, " +
                                       "2[0-9] times: .*" + GetParam().message));
    EXPECT_THAT(error.what(), HasSubstr("(a checkpoint of step 5 was written; fix the cause, then: "));
  }
  EXPECT_EQ(knobs().updates, 2);
  EXPECT_THAT(out.str(), testing::ContainsRegex("step 3: the " + Part() + "'s [0-9]+ answers all failed; .*" +
                                                GetParam().message + ".* After 3 such steps in a row the run stops\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\nstep 4: the " + Part())));
  // A resumed run goes on after the failed steps; if the cause is still there, for three more.
  EXPECT_THAT(test::MessageOf([&] { fakes::RunIn(config, true); }), HasSubstr("step 8: the " + Part() + "'s last "));
  fakes::Reset();
  EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  EXPECT_EQ(Metrics(database, 5)[Part() + "/error_rate"], 1);
}

TEST_P(PartFailureTest, WhatNoRetryCanFixEndsTheRunAtOnce) {
  if (GetParam().gives != 0) return;  // no error of the plugin
  if (Part() == "evaluator") return;  // below
  for (const kgrpo_error_code code : {KGRPO_ERROR_INVALID, KGRPO_ERROR_NOT_FOUND, KGRPO_ERROR_UNSUPPORTED,
                                      KGRPO_ERROR_BUDGET, KGRPO_ERROR_CANCELLED}) {
    fakes::Reset();
    const PipelineConfig config = Config("part_permanent", 8);
    knobs().fault_code = code;
    const auto breaks = [](const char* point) {
      if (std::string(point) == "database: after commit" && knobs().updates == 2) GetParam().Set(1);
    };
    std::string message;
    try {
      const RunOutcome outcome = fakes::RunIn(config, false, breaks);
      EXPECT_TRUE(code == KGRPO_ERROR_BUDGET || code == KGRPO_ERROR_CANCELLED);
      EXPECT_EQ(outcome.ExitCode(), code == KGRPO_ERROR_BUDGET ? 1 : 130);
      message = outcome.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      message = error.what();
    }
    EXPECT_THAT(message, HasSubstr("a checkpoint of step 2 was written")) << code;
    EXPECT_EQ(knobs().updates, 2) << code;
  }
}

// Whatever code an evaluator gives for a kernel, its round is dropped by name and the run goes on.
TEST(EvaluatorFailureTest, NoCodeOfOneKernelEndsTheRun) {
  for (int code = KGRPO_ERROR_INVALID; code <= KGRPO_ERROR_NO_SCORE + 1; ++code) {
    fakes::Reset();
    const PipelineConfig config = fakes::Config(fakes::Folder("one_kernel"), 0, 3);
    knobs().fault_code = code;
    knobs().evaluator_fails_every = 4;
    std::ostringstream out;
    Console console(out, false);
    EXPECT_EQ(fakes::RunIn(config, false, {}, &console).status, RunOutcome::Status::kFinished) << code;
    EXPECT_EQ(knobs().updates, 3) << code;
    EXPECT_THAT(out.str(), testing::ContainsRegex("the first, round [0-9]+ of trajectory [0-9]+ \\([a-z_]+, kernel "
                                                  "[0-9a-f]{12}\\): "))
        << code;
  }
}

// The steps after the checkpoint are repeated: with the evaluator's failures, and with new scores of the reward.
TEST_P(PartFailureTest, AResumedRunAsksTheCoderNothingTwice) {
  const PipelineConfig config = Config("part_resumed", 5);
  GetParam().Set(4);
  int commits = 0;
  const auto dies = [&](const char* point) {
    if (std::string(point) == "database: after commit" && ++commits == 5) throw std::runtime_error("killed");
  };
  EXPECT_THROW(fakes::RunIn(config, false, dies), std::runtime_error);
  const auto dropped = [&] {
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    std::string all;
    for (const uint64_t step : {4, 5}) {
      for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step))
        all += trajectory.dropped + "\n";
    }
    return all;
  };
  const std::string before = dropped(), samples = fakes::Samples(config.output_dir);
  ASSERT_THAT(before, HasSubstr(" failed: "));
  const bool again = knobs().evaluator_fails_every == 0;
  const int calls = knobs().coder_calls, evaluations = knobs().evaluations;
  if (!again) knobs().evaluator_fails_every = 0;  // the evaluator would answer by now
  EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(dropped(), before);
  EXPECT_EQ(fakes::Samples(config.output_dir), samples);
  EXPECT_EQ(knobs().coder_calls, calls);
  EXPECT_EQ(knobs().evaluations, evaluations);
}

TEST_P(PartFailureTest, ACorrectedRewardScoresWhatIsRecorded) {
  if (GetParam().part != RoundPart::kReward) return;
  const PipelineConfig config = Config("part_corrected", 2);
  GetParam().Set(4);
  EXPECT_THROW(fakes::RunIn(config, false,
                            [](const char* point) {
                              if (std::string(point) == "database: after commit") throw std::runtime_error("killed");
                            }),
               std::runtime_error);
  std::set<std::pair<uint64_t, std::string>> failed;  // trajectories and their kernels
  {
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, 1))
      if (trajectory.failed_round) failed.emplace(trajectory.trajectory, trajectory.failed_round->answer.source);
  }
  ASSERT_FALSE(failed.empty());
  knobs().reward_fails_every = 0;
  EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  int rounds = 0, scored = 0;
  for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, 1)) {
    EXPECT_EQ(trajectory.dropped, "");
    rounds += static_cast<int>(trajectory.rounds_done.size());
    for (const RoundRecord& round : trajectory.rounds_done)
      scored += failed.contains({trajectory.trajectory, round.answer.source}) ? 1 : 0;
  }
  EXPECT_EQ(rounds, 24);
  EXPECT_GE(scored, static_cast<int>(failed.size()));
}

TEST_P(PartFailureTest, DemonstrationsThatFailedAreCollectedAgain) {
  PipelineConfig config = fakes::Config(fakes::Folder(std::string("part_demonstrations_") + GetParam().name));
  GetParam().Set(1);
  EXPECT_THAT(test::MessageOf([&] { fakes::RunIn(config); }, KGRPO_ERROR_UNAVAILABLE),
              HasSubstr("the " + Part() + "'s last 6 answers all failed"));
  fakes::Reset();
  EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
}

// One failed answer, the only one that a part was asked for, does not end a warm start whose other rounds are good.
TEST_F(RoundFailureTest, AWarmStartKeepsItsOtherRounds) {
  fakes::Reset();
  knobs().evaluator_fails_every = 2;
  const PipelineConfig config = fakes::Config(fakes::Folder("demonstrations_some_fail"));
  EXPECT_EQ(fakes::RunIn(config).status, RunOutcome::Status::kFinished);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t cut = 0;
  for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kDemonstration, 1))
    cut += trajectory.failed_round ? 1 : 0;
  EXPECT_GT(cut, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    OfAllKinds, PartFailureTest,
    ::testing::Values(PartFailure{"evaluator", RoundPart::kEvaluator, 0, "no server answers"},
                      PartFailure{"reward", RoundPart::kReward, 0, "the scorer is away"},
                      PartFailure{"nan", RoundPart::kReward, std::numeric_limits<double>::quiet_NaN(),
                                  "the score is nan: it must be set and finite"},
                      PartFailure{"infinite", RoundPart::kReward, std::numeric_limits<double>::infinity(),
                                  "the score is inf: it must be set and finite"}),
    [](const auto& info) { return std::string(info.param.name); });

// `compare` scores a run's rounds by a reward as the run itself would have, also where that reward gives no score.
TEST_F(RoundFailureTest, ARewardWithoutAScoreEndsATrajectoryWhenRescored) {
  fakes::Reset();
  knobs().fault_code = KGRPO_ERROR_NO_SCORE;
  const PipelineConfig whole = fakes::Config(fakes::Folder("rescored_whole"), 0, 1);
  const PipelineConfig cut = fakes::Config(fakes::Folder("rescored_cut"), 0, 1);
  fakes::RunIn(whole);
  knobs().reward_fails_every = 4;
  fakes::RunIn(cut);
  RunMeasures measures = ReadMeasures(whole.output_dir, "");
  Rescore(*fakes::Parts(whole).reward, "other", &measures);
  EXPECT_EQ(measures.values.at("reward_by/other"), ReadMeasures(cut.output_dir, "").values.at("reward"));
  EXPECT_NE(measures.values.at("reward_by/other"), measures.values.at("reward"));
}

TEST_F(RoundFailureTest, ARewardWithoutAScoreHasNotFailed) {
  fakes::Reset();
  knobs().fault_code = KGRPO_ERROR_NO_SCORE;
  knobs().reward_fails_every = 4;
  std::ostringstream out;
  Console console(out, false);
  const PipelineConfig config = fakes::Config(fakes::Folder("no_score"), 0, 2);
  fakes::RunIn(config, false, {}, &console);
  EXPECT_THAT(out.str(), HasSubstr(" answers gave no score, and their trajectories end there; the first, "));
  EXPECT_THAT(out.str(), HasSubstr("the reward gave no score in "));
  EXPECT_THAT(out.str(), HasSubstr(" times, is no score: the scorer is away"));
  EXPECT_THAT(out.str(), Not(HasSubstr("the reward failed")));
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  size_t ended = 0;
  for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, 1)) {
    if (trajectory.dropped.empty()) continue;
    EXPECT_THAT(trajectory.dropped, HasSubstr(": the reward gave no score: the scorer is away"));
    EXPECT_EQ(trajectory.failed_round.value().failure.value().message, "no score: the scorer is away");
    ++ended;
  }
  EXPECT_GT(ended, 0U);
}

TEST(RoundFaultsTest, TheCodeDecidesWhetherARunGoesOn) {
  for (const kgrpo_error_code code : {KGRPO_ERROR_UNAVAILABLE, KGRPO_ERROR_INTERNAL, KGRPO_ERROR_NOT_FINITE})
    EXPECT_TRUE(FailsOneRound(RoundPart::kEvaluator, code)) << code;
  for (const kgrpo_error_code code :
       {KGRPO_ERROR_INVALID, KGRPO_ERROR_NOT_FOUND, KGRPO_ERROR_UNSUPPORTED, KGRPO_ERROR_CANCELLED, KGRPO_ERROR_BUDGET})
    EXPECT_FALSE(FailsOneRound(RoundPart::kReward, code)) << code;
  EXPECT_TRUE(FailsOneRound(RoundPart::kReward, static_cast<kgrpo_error_code>(99)));
  EXPECT_TRUE(FailsOneRound(RoundPart::kReward, KGRPO_ERROR_NO_SCORE));
}

// A step in which a part was not asked does not end its series, and one good answer does.
TEST(RoundFaultsTest, EachPartHasItsOwnSeries) {
  const auto rounds = [](std::initializer_list<const char*> kinds) {
    std::vector<TrajectoryRecord> trajectories(kinds.size());
    size_t i = 0;
    for (const std::string kind : kinds) {
      TrajectoryRecord& trajectory = trajectories[i];
      trajectory.trajectory = i++;
      trajectory.problem_name = "map_a";
      RoundRecord round;
      round.answer.outcome = kind == "coder" ? KGRPO_CODER_REFUSED : KGRPO_CODER_OK;
      if (kind == "evaluator") round.failure = {RoundPart::kEvaluator, "down"};
      if (kind == "reward") round.failure = {RoundPart::kReward, "NaN"};
      if (kind == "reward" || kind == "good") round.evaluation.emplace();
      if (kind == "good")
        trajectory.rounds_done.push_back(round);
      else
        trajectory.failed_round = round;
    }
    return trajectories;
  };
  const auto counts = CountParts(rounds({"coder", "evaluator", "reward", "good"}));
  EXPECT_EQ(counts[0].asked, 4u);
  EXPECT_EQ(counts[1].asked, 3u);
  EXPECT_EQ(counts[2].asked, 2u);
  for (const PartCounts& part : counts) EXPECT_EQ(part.failed, 1u);
  RoundFaults faults;
  EXPECT_EQ(faults.Add(rounds({"evaluator", "evaluator", "coder"}), 3),
            "the evaluator's 2 answers all failed; the commonest, 2 times: down. After 3 such steps in a row the run "
            "stops");
  EXPECT_THAT(faults.Add(rounds({"coder"}), 3), HasSubstr("the coder's 1 answers all failed"));
  EXPECT_EQ(faults.Add(rounds({"evaluator"}), 3), "");
  EXPECT_EQ(faults.Add(rounds({"good", "reward", "evaluator"}), 3),
            "1 of the reward's 2 answers failed, and their trajectories end there; the first, round 0 of trajectory 1 "
            "(map_a): NaN");
  EXPECT_EQ(faults.Add(rounds({"good", "reward"}), 3), "") << "once for the steps in a row";
  for (int step = 0; step < 2; ++step) faults.Add(rounds({"reward", "evaluator"}), 3);
  EXPECT_THROW(faults.Add(rounds({"reward"}), 3), Error);
}

TEST_F(RoundFailureTest, HeldOutEpisodesHaveTheSamePatience) {
  fakes::Reset();
  PipelineConfig config = fakes::Config(fakes::Folder("heldout_fails"), 0, 8);
  config.evaluation.every = 1;
  knobs().evaluator_fails_every = 1;
  knobs().evaluator_fails_for = "_c";  // the held-out problems
  std::ostringstream out;
  Console console(out, false);
  try {
    fakes::RunIn(config, false, {}, &console);
    ADD_FAILURE() << "the run went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_UNAVAILABLE);
    EXPECT_THAT(error.what(),
                HasSubstr("step 3: held-out problems: the evaluator's last 18 answers all failed; the commonest, 18 "
                          "times: no server answers"));
  }
  EXPECT_THAT(out.str(), HasSubstr("held-out after step 1: no round has a score\n"));
  EXPECT_THAT(out.str(), HasSubstr("held-out problems after step 1: the evaluator's 6 answers all failed"));
  EXPECT_EQ(knobs().updates, 3);
  knobs().evaluator_fails_every = 0;
  EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  EXPECT_EQ(Metrics(database, 3)["heldout/evaluator/error_rate"], 1);
  EXPECT_FALSE(Metrics(database, 3).contains("heldout/reward"));
  EXPECT_EQ(Metrics(database, 8)["heldout/evaluator/error_rate"], 0);
}

TEST_F(RoundFailureTest, AThoroughEvaluationThatFailsIsTriedAgain) {
  fakes::Reset();
  const auto best_of = [](const PipelineConfig& config) {
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    std::map<std::string, std::string> sources;
    for (const auto& [problem, kernel] : database.ReadBest(8)) sources[problem] = kernel.source;
    return sources;
  };
  PipelineConfig whole = fakes::Config(fakes::Folder("thorough_whole"), 0, 8);
  whole.checkpoint.every = 0;
  fakes::RunIn(whole);
  const auto expected = best_of(whole);
  ASSERT_FALSE(expected.empty());

  fakes::Reset();
  PipelineConfig config = fakes::Config(fakes::Folder("thorough_fails"), 0, 8);
  knobs().thorough_fails = 1000;
  std::ostringstream out;
  Console console(out, false);
  try {
    fakes::RunIn(config, false, {}, &console);
    ADD_FAILURE() << "the run ended as if all was well";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_UNAVAILABLE);
    EXPECT_THAT(error.what(), HasSubstr("the evaluator failed for the fastest kernels: no server answers (the last "
                                        "checkpoint is of step 8; fix the cause, then: kgrpo-host resume "));
  }
  EXPECT_THAT(out.str(), HasSubstr("step 3: the evaluator failed for the fastest kernels, which wait for the next "
                                   "checkpoint: no server answers\n"));
  EXPECT_EQ(knobs().updates, 8);
  EXPECT_TRUE(best_of(config).empty());
  knobs().thorough_fails = 0;
  EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
  EXPECT_EQ(knobs().updates, 8);
  EXPECT_EQ(best_of(config), expected);
}

}  // namespace
}  // namespace kgrpo
