// Runs with a coder that costs money and fails: every answer is counted by kind and in dollars, including answers of
// dropped trajectories, and a resumed run repeats the recorded figures.
#include "fakes.h"
#include "loop/coder_cost.h"
#include "loop/coder_faults.h"
#include "loop/metrics.h"
#include "loop/run.h"
#include "store/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <map>
#include <sstream>
#include <stdexcept>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using fakes::knobs;
using ::testing::HasSubstr;
using ::testing::Not;

class CoderFailureTest : public ::testing::Test {
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

TEST_F(CoderFailureTest, EveryAnswerIsPaidForAndCounted) {
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

// It must not look like a success: neither on the screen nor to a script.
TEST_F(CoderFailureTest, ARunWithoutASampleEndsAsAFailure) {
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
                                     "cause, and run again with --overwrite"));
  EXPECT_THAT(out.str(), testing::ContainsRegex("; the commonest, [0-9]+ times, is [a-z_]+: the line was cut"));
  EXPECT_THAT(out.str(), HasSubstr("nothing was learned: in no step was a sample left to train on"));
  EXPECT_THAT(out.str(), HasSubstr(": final/ (nothing was learned, see above), run.sqlite, rollouts/; kernels/ is "
                                   "empty: no candidate was both correct and faster than its reference\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("next: ")));
  EXPECT_TRUE(fs::exists(fs::path(config.output_dir) / "final"));
  EXPECT_EQ(fakes::RunIn(config, true).ExitCode(), 1);  // nor later
}

// What an earlier stage has learned does not hide it.
TEST_F(CoderFailureTest, AStageWithoutASampleEndsTheRunAsAFailure) {
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

TEST_F(CoderFailureTest, ReusedAnswersAreCountedAndSaid) {
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
      counts.answers += CountAnswers(trajectories).answers;
      counts.reused += CountAnswers(trajectories).reused;
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

TEST_F(CoderFailureTest, WhatADroppedRoundWasIsKept) {
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

TEST_F(CoderFailureTest, PunishedRoundsStayAndCount) {
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

// The steps after the checkpoint are done again. Failures are among what is recorded of them: nobody is asked again,
// though the coder would know an answer by now.
TEST_F(CoderFailureTest, AResumedRunRepeatsFailures) {
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
TEST_F(CoderFailureTest, ACoderThatIsOfNoUseEndsTheRunWithACheckpoint) {
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
    EXPECT_THAT(out.str(), Not(HasSubstr("step 4: the coder's")));
    // The failed steps are recorded and done: a resumed run asks the coder, which works again, for the others only.
    knobs().coder_fails_every = 0;
    EXPECT_EQ(fakes::RunIn(config, true).status, RunOutcome::Status::kFinished);
    RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
    EXPECT_EQ(Metrics(database, 5)["coder/error_rate"], 1);
    EXPECT_EQ(Metrics(database, 6)["coder/error_rate"], 0);
  }
}

TEST_F(CoderFailureTest, DemonstrationsThatFailedAreAskedForAgain) {
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

TEST_F(CoderFailureTest, OneGoodAnswerIsEnoughAndFewBadStepsAreChance) {
  CoderFaults faults;
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
  try {
    faults.Add(bad, kEnough);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("last 9 answers"));
    EXPECT_THAT(error.what(), HasSubstr("6 times, is truncated: cut."));
  }
}

// A stop reports the coder's own figure of the cost of calls without an answer, even if nothing was asked since.
TEST_F(CoderFailureTest, AStopTellsWhatWasPaidForNothing) {
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

TEST_F(CoderFailureTest, ADatabaseFromBeforeGetsTheTable) {
  const PipelineConfig config = fakes::Config(fakes::Folder("coder_older"), 0, 2);
  fakes::RunIn(config);
  { Database(fs::path(config.output_dir) / "run.sqlite").Execute("DROP TABLE dropped_rounds"); }
  RunDatabase database(fs::path(config.output_dir) / "run.sqlite");
  EXPECT_EQ(database.ReadStep(Purpose::kTrain, 2).size(), 8u);
  EXPECT_GT(database.ReadCoderTotals(2).answers, 0u);
}

}  // namespace
}  // namespace kgrpo
