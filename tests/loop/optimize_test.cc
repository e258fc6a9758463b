// optimize/optimize.h: the search for one problem's fastest kernel.
#include "optimize/optimize.h"

#include "fakes.h"
#include "test.h"

#include <tuple>

namespace kgrpo {
namespace {

class OptimizeTest : public testing::Test {
 protected:
  OptimizeTest() {
    fakes::Reset();
    plan_.suggester.kind = Suggester::Kind::kUniform;
    plan_.beam = 2;
    plan_.samples = 3;
    plan_.evaluations = 12;
  }

  SearchResult Search() {
    const OpenProblem& problem = problems_[0];
    return kgrpo::Search(config_, parts_, problem, problem.source, problem.baseline, pool_, plan_,
                         {.candidate = [this](const SearchCandidate&) { ++told_; },
                          .wave = [this](const StepRecord& wave) { waves_.push_back(wave); }});
  }

  using Row = std::tuple<std::string, std::string, double, uint64_t>;
  static std::vector<Row> Rows(const SearchResult& result) {
    std::vector<Row> rows;
    for (const SearchCandidate& c : result.candidates)
      rows.emplace_back(c.round.suggestion, c.round.answer.source, c.round.speedup, c.evaluations);
    return rows;
  }

  PipelineConfig config_ = fakes::Config("");
  PipelineParts parts_ = fakes::Parts(config_);
  WorkerPool pool_{4};
  ProblemSet problems_{*parts_.evaluator, config_.heldout_problems, pool_, /*skip_unusable=*/false};
  SearchPlan plan_;
  size_t told_ = 0;
  std::vector<StepRecord> waves_;
};

// The record of a search is a run of the purpose "search": a step for each wave, a round for each candidate.
TEST_F(OptimizeTest, EachWaveIsAStepOfItsRounds) {
  std::vector<RoundsUnderWay> told;
  plan_.under_way = [&](const RoundsUnderWay& rounds) { told.push_back(rounds); };
  const SearchResult result = Search();
  EXPECT_EQ(waves_.size(), result.waves);
  size_t next = 0;
  for (const StepRecord& wave : waves_) {
    EXPECT_EQ(wave.purpose, Purpose::kSearch);
    EXPECT_NE(wave.reward_mean, 0) << "rounds have scores, as those of training have";
    EXPECT_EQ(wave.step, static_cast<uint64_t>(&wave - waves_.data()) + 1);
    for (const TrajectoryRecord& trajectory : wave.trajectories) {
      ASSERT_EQ(trajectory.rounds_done.size(), 1U) << "none of an earlier wave";
      const RoundRecord &round = trajectory.rounds_done[0], &candidate = result.candidates.at(next++).round;
      EXPECT_EQ(round.round, candidate.round);
      EXPECT_EQ(round.answer.source, candidate.answer.source);
      EXPECT_EQ(round.speedup, candidate.speedup);
      EXPECT_FALSE(round.messages.empty());
    }
  }
  EXPECT_EQ(next, result.candidates.size());
  for (const RoundsUnderWay& rounds : told) {
    EXPECT_EQ(rounds.policy, 0U);  // the suggestions are drawn before
    EXPECT_LE(rounds.coder + rounds.evaluator, 6U);
  }
  EXPECT_EQ(UnderWayText({12, 0, 3}), "with the policy 12, evaluator 3");
  EXPECT_EQ(UnderWayText({}), "");
}

TEST_F(OptimizeTest, JudgesAsManyKernelsAsItMay) {
  const SearchResult result = Search();
  std::set<std::string> sources;
  for (const SearchCandidate& c : result.candidates) {
    if (c.round.evaluation && c.round.answer.source != problems_[0].source) sources.insert(c.round.answer.source);
  }
  EXPECT_EQ(result.evaluations, 12u);
  EXPECT_EQ(sources.size(), 12u);
  EXPECT_EQ(told_, result.candidates.size());
  EXPECT_GT(result.candidates.back().best_speedup, 1);
}

TEST_F(OptimizeTest, AFailedEvaluationCostsItsKernelAlone) {
  fakes::knobs().evaluator_fails_every = 4;
  const SearchResult result = Search();
  size_t failed = 0;
  for (const SearchCandidate& c : result.candidates) {
    if (c.outcome() != "evaluator_failed") continue;
    ++failed;
    EXPECT_FALSE(c.round.evaluation);
    EXPECT_EQ(c.round.failure->message, "no server answers");
    EXPECT_THAT(c.round.answer.source, testing::HasSubstr("// " + c.round.suggestion));
    EXPECT_EQ(c.round.speedup, 0);
  }
  EXPECT_GT(failed, 0u);
  EXPECT_EQ(result.evaluations, 12u) << "a failed one does not count";
  EXPECT_GT(result.candidates.back().best_speedup, 1);
}

TEST_F(OptimizeTest, TheOrderOfCompletionChangesNothing) {
  const std::vector<Row> rows = Rows(Search());
  for (const uint64_t delays : {1, 2}) {
    fakes::knobs().delay_seed = delays;
    EXPECT_EQ(Rows(Search()), rows);
  }
  config_.seed += 1;
  EXPECT_NE(Rows(Search()), rows);
}

TEST_F(OptimizeTest, GoesOnFromCorrectKernelsOnly) {
  const SearchResult result = Search();
  std::set<std::string> wrong;  // suggestions never led to a kernel that was left
  for (const SearchCandidate& c : result.candidates) {
    if (c.round.evaluation && !c.round.evaluation->correct) {
      EXPECT_EQ(c.round.speedup, 0);
      wrong.insert(c.round.suggestion);
    }
  }
  ASSERT_FALSE(wrong.empty());
  for (const SearchCandidate& c : result.candidates) {
    if (c.round.speedup == 0) continue;
    for (const std::string& suggestion : c.suggestions) EXPECT_NE(suggestion, "overflow");
  }
}

TEST_F(OptimizeTest, AFixedSequenceEndsWhereNothingIsNew) {
  plan_.suggester.kind = Suggester::Kind::kFixed;
  plan_.suggester.sequence = {"tile"};
  const SearchResult result = Search();
  EXPECT_EQ(result.ended, "nothing new");
  EXPECT_EQ(result.evaluations, 1u);
}

// A policy trained on other kernels may name nothing that applies to this one: the coder's list does.
TEST_F(OptimizeTest, WhereThePolicySuggestsNothingNewTheListIsDrawnFrom) {
  plan_.suggester.kind = Suggester::Kind::kPolicy;
  plan_.evaluations = 1000;
  config_.loop.rounds = 3;
  fakes::knobs().policy_suggests = 0;
  const SearchResult result = Search();
  EXPECT_EQ(result.ended, "nothing new");
  std::set<std::string> drawn;
  for (const SearchCandidate& c : result.candidates) {
    EXPECT_TRUE(c.from_list || drawn.empty()) << "first the policy's, then the list's";
    EXPECT_LT(c.round.round, 3U);
    EXPECT_LE(c.suggestions.size(), 3U);
    if (c.from_list) {
      drawn.insert(c.round.suggestion);
    } else {
      EXPECT_EQ(c.round.suggestion, fakes::kTechniques[0]);
    }
  }
  EXPECT_EQ(drawn, std::set<std::string>(fakes::kTechniques.begin(), fakes::kTechniques.end()));
  plan_.evaluations = 3;
  EXPECT_EQ(Search().ended, "3 evaluations");
}

TEST_F(OptimizeTest, AStopEndsItAndTheFastestIsConfirmed) {
  const SearchResult result = Search();
  fakes::knobs().cancelled = true;
  const SearchResult stopped = Search();
  EXPECT_TRUE(stopped.stopped);
  EXPECT_TRUE(stopped.candidates.empty());
  fakes::knobs().cancelled = false;
  const ConfirmedKernel best = Confirm(config_, parts_, problems_[0], problems_[0].source, result.candidates);
  EXPECT_LT(best.evaluation.seconds, best.start.seconds);
  EXPECT_FALSE(best.suggestions.empty());
}

// A thorough evaluation decides what a search delivers, so one that fails is repeated.
TEST_F(OptimizeTest, AFailedConfirmationIsRepeated) {
  const SearchResult result = Search();
  const ConfirmedKernel best = Confirm(config_, parts_, problems_[0], problems_[0].source, result.candidates);
  fakes::knobs().thorough_fails = 2;
  const ConfirmedKernel again = Confirm(config_, parts_, problems_[0], problems_[0].source, result.candidates);
  EXPECT_EQ(again.source, best.source);
  EXPECT_EQ(again.refuted, best.refuted);
  fakes::knobs().thorough_fails = 4;
  EXPECT_THROW(Confirm(config_, parts_, problems_[0], problems_[0].source, result.candidates), Error);
  fakes::knobs().thorough_fails = 1;
  fakes::knobs().fault_code = KGRPO_ERROR_INVALID;
  EXPECT_THROW(Confirm(config_, parts_, problems_[0], problems_[0].source, result.candidates), Error)
      << "the kernel to begin with cannot be judged, and no repetition can help";
}

TEST_F(OptimizeTest, EndsAtTheCost) {
  fakes::knobs().coder_cost = 0.5;
  plan_.max_cost = 1;
  const SearchResult result = Search();
  EXPECT_EQ(result.ended, "the cost limit (--max-cost)");
  EXPECT_EQ(result.candidates.size(), 3u);  // one wave of three from the start
  EXPECT_DOUBLE_EQ(result.cost, 1.5);
}

// Prompts are those of training: with the fastest rounds, and cut to prompt.max_tokens.
TEST_F(OptimizeTest, PromptsAreThoseOfTraining) {
  config_.prompt.user = "{{#history}}round {{suggestion}} {{/history}}{{#best}}best {{suggestion}}{{/best}}.";
  plan_.suggester.kind = Suggester::Kind::kPolicy;
  Search();
  size_t with_best = 0, longest = 0;
  for (const StepRecord& wave : waves_) {
    for (const TrajectoryRecord& trajectory : wave.trajectories) {
      const RoundRecord& round = trajectory.rounds_done[0];
      with_best += round.messages.back().content.find("best ") != std::string::npos ? 1 : 0;
      longest = std::max(longest, round.prompt_ids.size());
    }
  }
  EXPECT_GT(with_best, 0U);
  config_.prompt.max_tokens = static_cast<uint32_t>(longest - 1);
  waves_.clear();
  Search();
  for (const StepRecord& wave : waves_) {
    for (const TrajectoryRecord& trajectory : wave.trajectories)
      EXPECT_LT(trajectory.rounds_done[0].prompt_ids.size(), longest);
  }
}

TEST_F(OptimizeTest, RefusesAStartThatIsNotCorrect) {
  Evaluation wrong = problems_[0].baseline;
  wrong.correct = false;
  EXPECT_THROW(kgrpo::Search(config_, parts_, problems_[0], "x", wrong, pool_, plan_, {}), Error);
}

}  // namespace
}  // namespace kgrpo
