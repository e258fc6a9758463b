// loop/optimize.h: the search for one problem's fastest kernel.
#include "loop/optimize.h"

#include "fakes.h"
#include "loop/candidate_lines.h"
#include "loop/candidate_table.h"
#include "loop/confirm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

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
                         [this](const SearchCandidate&) { ++told_; });
  }

  using Row = std::tuple<std::string, std::string, double, uint64_t>;
  static std::vector<Row> Rows(const SearchResult& result) {
    std::vector<Row> rows;
    for (const SearchCandidate& c : result.candidates)
      rows.emplace_back(c.suggestion, c.source, c.speedup, c.evaluations);
    return rows;
  }

  PipelineConfig config_ = fakes::Config("");
  PipelineParts parts_ = fakes::Parts(config_);
  WorkerPool pool_{4};
  ProblemSet problems_{*parts_.evaluator, config_.heldout_problems, pool_, /*skip_unusable=*/false};
  SearchPlan plan_;
  size_t told_ = 0;
};

TEST_F(OptimizeTest, CandidatesAreATableOfTheFastest) {
  std::vector<RoundsUnderWay> told;
  plan_.under_way = [&](const RoundsUnderWay& rounds) { told.push_back(rounds); };
  const SearchResult result = Search();
  CandidateTable table(12, 1);
  for (const SearchCandidate& candidate : result.candidates) table.Add(candidate, candidate.suggestion + ": tried");
  const std::vector<std::string> lines = table.Lines();
  ASSERT_GE(lines.size(), 4U);
  EXPECT_LE(lines.size(), CandidateTable::kShown + 3);
  EXPECT_THAT(lines[0], testing::StartsWith("12/12 kernels judged  best "));
  EXPECT_EQ(lines[1], "  speedup  kernel  round  suggestions");
  // The first row is the best.
  const std::string best = lines[0].substr(lines[0].rfind(' ') + 1);
  EXPECT_EQ(lines[2].substr(2, 7), std::string(7 - best.size(), ' ') + best);
  for (size_t i = 3; i + 1 < lines.size(); ++i) EXPECT_GE(std::stod(lines[i - 1]), std::stod(lines[i]));
  EXPECT_EQ(lines.back(), "  last: " + result.candidates.back().suggestion + ": tried");
  for (const RoundsUnderWay& rounds : told) {
    EXPECT_EQ(rounds.policy, 0U);  // the suggestions are drawn before
    EXPECT_LE(rounds.coder + rounds.evaluator, 6U);
  }
  EXPECT_EQ(UnderWayText({12, 0, 3}), "with the policy 12, evaluator 3");
  EXPECT_EQ(UnderWayText({0, 2, 0, 5}), "with the coder 2, screen 5");
  EXPECT_EQ(UnderWayText({}), "");
}

TEST_F(OptimizeTest, JudgesAsManyKernelsAsItMay) {
  const SearchResult result = Search();
  std::set<std::string> sources;
  for (const SearchCandidate& c : result.candidates) {
    if (c.evaluation && c.source != problems_[0].source) sources.insert(c.source);
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
  CandidateLines lines(1);
  for (const SearchCandidate& c : result.candidates) {
    lines.Add(c);
    if (c.outcome != kEvaluatorFailed) continue;
    ++failed;
    EXPECT_FALSE(c.evaluation);
    EXPECT_EQ(c.message, "no server answers");
    EXPECT_THAT(c.source, testing::HasSubstr("// " + c.suggestion));
    EXPECT_EQ(c.speedup, 0);
    EXPECT_EQ(lines.Said(c), c.suggestion + ": evaluator_failed (no server answers)");
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
    if (c.evaluation && !c.evaluation->correct) {
      EXPECT_EQ(c.speedup, 0);
      wrong.insert(c.suggestion);
    }
  }
  ASSERT_FALSE(wrong.empty());
  for (const SearchCandidate& c : result.candidates) {
    if (c.speedup == 0) continue;
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

// A policy trained on other kernels may name nothing that applies to this one: the coder's list is gone through.
TEST_F(OptimizeTest, WhereThePolicySuggestsNothingNewTheListIsTried) {
  plan_.suggester.kind = Suggester::Kind::kPolicy;
  plan_.evaluations = 1000;
  config_.loop.rounds = 3;
  fakes::knobs().policy_suggests = 0;
  const SearchResult result = Search();
  EXPECT_EQ(result.ended, "all suggestions of the coder's list were tried");
  std::set<std::string> on_start = {fakes::kTechniques[0]};
  bool listed = false;
  for (const SearchCandidate& c : result.candidates) {
    EXPECT_TRUE(c.from_list || !listed);
    listed = c.from_list;
    EXPECT_LT(c.round, 3U);
    if (!c.from_list) {
      EXPECT_EQ(c.suggestion, fakes::kTechniques[0]);
    } else if (c.round == 0) {
      EXPECT_TRUE(on_start.insert(c.suggestion).second);
    }
    EXPECT_LE(c.suggestions.size(), 3U);
  }
  EXPECT_EQ(on_start, std::set<std::string>(fakes::kTechniques.begin(), fakes::kTechniques.end()));
  // The uniform search finds the same kernels, given enough tries.
  plan_.suggester.kind = Suggester::Kind::kUniform;
  const SearchResult uniform = Search();
  EXPECT_GE(result.candidates.back().best_speedup, uniform.candidates.back().best_speedup);
  EXPECT_GE(result.evaluations, uniform.evaluations);
}

TEST_F(OptimizeTest, TheListIsNotTriedBeyondTheLimits) {
  plan_.suggester.kind = Suggester::Kind::kPolicy;
  fakes::knobs().policy_suggests = 0;
  plan_.evaluations = 3;
  const SearchResult result = Search();
  EXPECT_EQ(result.ended, "3 evaluations");
  EXPECT_EQ(result.evaluations, 3U);
}

TEST_F(OptimizeTest, WhatGaveNothingNewIsSaidOnce) {
  CandidateLines lines(2);
  SearchCandidate none;
  none.suggestion = "unroll 4";
  none.outcome = "not_applicable";
  none.message = "not applicable: it has no loop\nmore";
  EXPECT_EQ(lines.Said(none), "unroll 4: not_applicable (it has no loop)");
  SearchCandidate kernel;
  kernel.suggestion = "tile";
  kernel.outcome = "correct";
  kernel.speedup = 3;
  kernel.evaluation.emplace();
  EXPECT_EQ(lines.Said(kernel), "tile: correct 1.50x");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lines.Add(none), i == 0);
  EXPECT_TRUE(lines.Add(kernel));
  EXPECT_TRUE(lines.Add(kernel));  // as fast, and another kernel
  kernel.repeated = true;
  EXPECT_TRUE(lines.Add(kernel));
  EXPECT_FALSE(lines.Add(kernel));
  none.suggestion = "unroll 8";
  EXPECT_TRUE(lines.Add(none));
  EXPECT_EQ(lines.Said(none), "unroll 8: not_applicable (as unroll 4)");
  EXPECT_EQ(lines.Repeats(), (std::vector<std::string>{"4 times  not_applicable (it has no loop): unroll 4, unroll 8",
                                                       "2 times  tile: correct 1.50x (judged before)"}));
  EXPECT_EQ(lines.refusals().Text(),
            "4 of 8 answers; the commonest reason, 4 times: not applicable: it has no loop\nmore");
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
      << "no repetition can help";
}

TEST_F(OptimizeTest, EndsAtTheCost) {
  fakes::knobs().coder_cost = 0.5;
  plan_.max_cost = 1;
  const SearchResult result = Search();
  EXPECT_EQ(result.ended, "the cost limit (--max-cost)");
  EXPECT_EQ(result.candidates.size(), 3u);  // one wave of three from the start
  EXPECT_DOUBLE_EQ(result.cost, 1.5);
}

TEST_F(OptimizeTest, RefusesAStartThatIsNotCorrect) {
  Evaluation wrong = problems_[0].baseline;
  wrong.correct = false;
  EXPECT_THROW(kgrpo::Search(config_, parts_, problems_[0], "x", wrong, pool_, plan_, [](const SearchCandidate&) {}),
               Error);
}

}  // namespace
}  // namespace kgrpo
