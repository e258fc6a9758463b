// loop/screen.h, and the search that uses it: kernels are screened, and only promising or uncertain ones are
// judged.
#include "loop/screen.h"

#include "fakes.h"
#include "loop/candidate_lines.h"
#include "loop/candidate_table.h"
#include "loop/optimize.h"
#include "loop/rounds_in_flight.h"  // SharedInputsSeed

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace kgrpo {
namespace {

class ScreenTest : public testing::Test {
 protected:
  ScreenTest() {
    fakes::Reset();
    plan_.suggester.kind = Suggester::Kind::kUniform;
    plan_.beam = 2;
    plan_.samples = 4;
    plan_.evaluations = 1000;
  }

  // `kind` as fakes::ScreenEvaluator has it; "": none.
  SearchResult Search(const std::string& kind, size_t problem = 0) {
    const OpenProblem& open = problems_[problem];
    std::unique_ptr<Screen> screen;
    if (!kind.empty()) {
      screen = std::make_unique<Screen>(fakes::ScreenEvaluator(kind), kind, open.directory, open.source, open.baseline,
                                        SharedInputsSeed(config_.seed, open.name));
    }
    plan_.screen = screen.get();
    return kgrpo::Search(config_, parts_, open, open.source, open.baseline, *pool_, plan_,
                         [](const SearchCandidate&) {});
  }

  PipelineConfig config_ = fakes::Config("");
  PipelineParts parts_ = fakes::Parts(config_);
  std::unique_ptr<WorkerPool> pool_ = std::make_unique<WorkerPool>(4);
  ProblemSet problems_{*parts_.evaluator, config_.heldout_problems, *pool_, /*skip_unusable=*/false};
  SearchPlan plan_;
};

double Best(const SearchResult& result) {
  return result.candidates.back().best_speedup;
}

// A kernel of the fake coder is the one that it was made from and a line.
std::string ParentOf(const std::string& source) {
  return source.substr(0, source.rfind("// "));
}

TEST_F(ScreenTest, AnExactScreenFindsTheSameWithFewerEvaluations) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    config_.seed = seed;
    for (size_t problem = 0; problem < problems_.size(); ++problem) {
      const SearchResult plain = Search("", problem);
      for (const char* kind : {"exact", "biased"}) {
        fakes::knobs().evaluations = 0;
        const SearchResult screened = Search(kind, problem);
        EXPECT_NEAR(Best(screened), Best(plain), 1e-9) << kind << " seed " << seed;
        EXPECT_LT(screened.evaluations, plain.evaluations) << kind << " seed " << seed;
        EXPECT_EQ(screened.ended, "nothing new");
        EXPECT_EQ(static_cast<uint64_t>(fakes::knobs().evaluations), screened.evaluations) << "no kernel twice";
      }
    }
  }
}

// A screen that knows nothing must not hide what is fast.
TEST_F(ScreenTest, AUselessScreenLosesNothing) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    config_.seed = seed;
    for (size_t problem = 0; problem < problems_.size(); ++problem) {
      const double best = Best(Search("", problem));
      for (const char* kind : {"constant", "random"})
        EXPECT_NEAR(Best(Search(kind, problem)), best, 1e-9) << kind << " seed " << seed;
    }
  }
}

// Most kernels gain nothing, and a few lead far: predicted from the start, their successors would look as slow as most.
TEST_F(ScreenTest, WhatIsMadeFromAFastKernelIsNotTakenForAnAverageOne) {
  const OpenProblem& problem = problems_[0];
  Screen screen(fakes::ScreenEvaluator("constant"), "constant", problem.directory, problem.source, problem.baseline, 1);
  const auto learn = [&](const std::string& source, const std::string& parent, double seconds) {
    screen.Judge(source, 1);
    Evaluation measured = problem.baseline;
    measured.seconds = seconds;
    screen.Learn(source, parent, measured);
  };
  const double start = problem.baseline.seconds;
  for (int i = 0; i < 30; ++i) learn("slow" + std::to_string(i), problem.source, start * (0.9 + 0.2 * i / 29));
  std::string parent = problem.source;
  double seconds = start;
  for (int i = 1; i <= 6; ++i) {
    const std::string source = "fast" + std::to_string(i);
    learn(source, parent, seconds /= 1.3);
    parent = source;
  }
  screen.Judge("next", 1);
  screen.Judge("from the start", 1);
  EXPECT_THAT(screen.Promising({{"from the start", problem.source}, {"next", "fast6"}}, {"fast5", "fast6"}, 2),
              testing::ElementsAre(1));
}

// With an exact screen predictions are the truth, once there are enough: in every wave what was evaluated beats the
// slowest kernel of the beam that it began with, and what was screened out as slow does not beat the one it ended with.
TEST_F(ScreenTest, EvaluatesWhatWouldEnterTheBeamAndNothingElse) {
  const OpenProblem& problem = problems_[0];
  std::map<std::string, double> seconds = {{problem.source, problem.baseline.seconds}};
  const SearchResult result = Search("exact");
  std::map<uint64_t, std::vector<const SearchCandidate*>> waves;
  for (const SearchCandidate& candidate : result.candidates) {
    if (!candidate.source.empty()) waves[candidate.wave].push_back(&candidate);
    if (candidate.speedup > 0) seconds[candidate.source] = candidate.evaluation->seconds;
  }
  const auto slowest = [&](const std::set<std::string>& rivals) {
    std::vector<double> times;
    for (const std::string& rival : rivals) times.push_back(seconds.at(rival));
    std::ranges::sort(times);
    return times[std::min<size_t>(plan_.beam, times.size()) - 1];
  };
  size_t predictions = 0, evaluated = 0, screened_out = 0;
  for (const auto& [wave, candidates] : waves) {
    const bool enough = predictions >= Screen::kPredictions;
    std::set<std::string> before, after;
    for (const SearchCandidate* c : candidates) before.insert(ParentOf(c->source));
    after = before;
    for (const SearchCandidate* c : candidates) {
      if (c->speedup > 0) after.insert(c->source);
      if (c->speedup == 0 || c->repeated) continue;
      ++predictions;
      if (!enough || before.size() < plan_.beam) continue;
      EXPECT_LT(c->evaluation->seconds, slowest(before) * (1 + 1e-9)) << "wave " << wave << ": " << c->source;
      ++evaluated;
    }
    for (const SearchCandidate* c : candidates) {
      if (c->outcome != kScreenedOut || !c->screening->correct) continue;
      EXPECT_TRUE(enough) << "too few to tell in wave " << wave;
      EXPECT_GE(c->screening->seconds, slowest(after) * (1 - 1e-9)) << "wave " << wave << ": " << c->source;
      ++screened_out;
    }
  }
  EXPECT_GT(evaluated, 0U);
  EXPECT_GT(screened_out, 0U);
}

TEST_F(ScreenTest, WhatItCannotTellAboutIsEvaluated) {
  for (const char* kind : {"timeout", "error"}) {
    const SearchResult result = Search(kind);
    size_t uncertain = 0;
    for (const SearchCandidate& candidate : result.candidates) {
      if (candidate.source.find("// tile") == std::string::npos) continue;
      EXPECT_NE(candidate.outcome, kScreenedOut) << kind;
      ++uncertain;
    }
    EXPECT_GT(uncertain, 0U);
    EXPECT_NEAR(Best(result), Best(Search("")), 1e-9);
  }
}

TEST_F(ScreenTest, WhatItFindsWrongIsNotEvaluatedAndCountedApart) {
  const SearchResult result = Search("strict");
  std::set<std::string> wrong, slow, evaluated;
  for (const SearchCandidate& candidate : result.candidates) {
    if (candidate.evaluation) {
      EXPECT_TRUE(candidate.evaluation->correct) << "the strict screen knows all wrong ones";
      if (candidate.screening) evaluated.insert(candidate.source);
    } else if (candidate.outcome == kScreenedOut) {
      (candidate.screening->correct ? slow : wrong).insert(candidate.source);
      EXPECT_EQ(candidate.speedup, 0) << "a screen's time is no measurement";
      EXPECT_EQ(candidate.screened_speedup > 0, candidate.screening->correct);
    }
  }
  EXPECT_EQ(result.screened_wrong, wrong.size());
  EXPECT_GT(std::ranges::count_if(wrong, [](const std::string& s) { return s.find("// tile") != std::string::npos; }),
            0);
  for (const std::string& source : evaluated) slow.erase(source);
  EXPECT_EQ(result.screened_slow, slow.size());
  EXPECT_EQ(result.candidates.back().screened_out, slow.size() + wrong.size());
  EXPECT_EQ(result.evaluations, evaluated.size());
}

TEST_F(ScreenTest, TheOrderOfCompletionChangesNothing) {
  using Row = std::tuple<std::string, std::string, std::string, double, double, uint64_t, uint64_t>;
  const auto rows = [](const SearchResult& result) {
    std::vector<Row> rows;
    for (const SearchCandidate& c : result.candidates)
      rows.emplace_back(c.suggestion, c.source, c.outcome, c.speedup, c.screened_speedup, c.evaluations,
                        c.screened_out);
    return rows;
  };
  plan_.evaluations = 20;
  const std::vector<Row> first = rows(Search("random"));
  for (const unsigned threads : {1U, 3U, 8U}) {
    pool_ = std::make_unique<WorkerPool>(threads);
    fakes::knobs().delay_seed = threads;
    EXPECT_EQ(rows(Search("random")), first) << threads << " threads";
  }
  config_.seed += 1;
  EXPECT_NE(rows(Search("random")), first);
}

// New kernels without end, all of them too slow.
TEST_F(ScreenTest, ScreenedOutKernelsDoNotKeepTheSearchGoing) {
  fakes::knobs().coder_counts = true;
  plan_.suggester.kind = Suggester::Kind::kFixed;
  for (const std::string& technique : fakes::kTechniques) {
    plan_.suggester.sequence = {technique};
    const SearchResult plain = Search("");
    if (plain.candidates.front().speedup == 0 || Best(plain) > 1) continue;
    EXPECT_EQ(plain.ended, "1000 evaluations") << "each is new";
    const SearchResult result = Search("exact");
    EXPECT_EQ(result.ended, "nothing new");
    EXPECT_GE(result.evaluations, Screen::kPredictions);
    EXPECT_LT(result.evaluations, 2 * Screen::kPredictions);
    EXPECT_GT(result.screened_slow, 0U);
    return;
  }
  FAIL() << "no technique makes this problem's kernels slower";
}

TEST_F(ScreenTest, WhatTheLimitLeavesIsNotScreenedOut) {
  for (const uint64_t evaluations : {1, 2, 5}) {
    plan_.evaluations = evaluations;
    const SearchResult result = Search("constant");
    EXPECT_EQ(result.evaluations, evaluations);
    EXPECT_EQ(result.screened_slow, 0U) << "fewer predictions than it takes to keep one out";
    for (const SearchCandidate& candidate : result.candidates)
      EXPECT_TRUE(candidate.outcome != kScreenedOut || !candidate.screening->correct);
  }
}

TEST_F(ScreenTest, AnEvaluatorsOwnLimitEndsTheSearchWithWhatWasFound) {
  fakes::knobs().evaluations = 0;
  fakes::knobs().budget_after_evaluations = 11;
  const SearchResult result = Search("constant");
  EXPECT_EQ(result.ended, "the evaluator's own limit");
  EXPECT_GT(result.evaluations, 0U);
  EXPECT_LE(result.evaluations, 11U);
}

TEST_F(ScreenTest, EndsAtTheEvaluationsTheTimeAndAStop) {
  plan_.evaluations = 9;
  const SearchResult few = Search("constant");
  EXPECT_EQ(few.ended, "9 evaluations");
  EXPECT_EQ(few.evaluations, 9U);

  plan_.evaluations = 1000;
  fakes::knobs().delay_seed = 1;
  plan_.seconds = 0.02;
  const SearchResult timed = Search("constant");
  EXPECT_EQ(timed.ended, "the time limit (--budget)");
  EXPECT_FALSE(timed.stopped);

  plan_.seconds = 100;
  fakes::knobs().screenings = 0;
  fakes::knobs().cancel_after_screenings = 12;
  const SearchResult stopped = Search("constant");
  EXPECT_TRUE(stopped.stopped);
  EXPECT_GT(stopped.evaluations, 0U) << "what was found before is kept";
  EXPECT_EQ(stopped.candidates.back().evaluations, stopped.evaluations);
}

TEST_F(ScreenTest, GoesThroughTheCodersListToo) {
  plan_.suggester.kind = Suggester::Kind::kPolicy;
  fakes::knobs().policy_suggests = 0;
  const SearchResult plain = Search("");
  const SearchResult screened = Search("exact");
  EXPECT_EQ(screened.ended, "all suggestions of the coder's list were tried");
  EXPECT_NEAR(Best(screened), Best(plain), 1e-9);
  EXPECT_LT(screened.evaluations, plain.evaluations);
}

TEST_F(ScreenTest, RefusesWhatItCannotBeginWith) {
  const OpenProblem& problem = problems_[0];
  const auto refusal = [&](const std::string& kind, const std::string& directory, const std::string& start) {
    try {
      Screen(fakes::ScreenEvaluator(kind), "cheap", directory, start, problem.baseline, 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("exact", problem.directory, problem.source), "");
  EXPECT_THAT(refusal("exact", "missing", problem.source),
              testing::AllOf(testing::HasSubstr("the screen (cheap) cannot open the problem: "),
                             testing::HasSubstr("--screen none")));
  for (const char* kind : {"strict", "timeout", "error"}) {
    EXPECT_THAT(refusal(kind, problem.directory, problem.source + "// tile\n"),
                testing::StartsWith("the screen (cheap) cannot judge the kernel to begin with ("))
        << kind;
  }
}

TEST_F(ScreenTest, IsShownApartFromWhatWasJudged) {
  SearchCandidate candidate;
  candidate.suggestion = "tile";
  candidate.source = "x";
  candidate.outcome = kScreenedOut;
  candidate.screening.emplace().correct = true;
  candidate.screened_speedup = 0.9;
  candidate.evaluations = 3;
  candidate.screened_out = 2;
  CandidateLines lines(2);
  EXPECT_EQ(lines.Said(candidate), "tile: screened out at 0.90x by the screen's time");
  EXPECT_TRUE(lines.Add(candidate));
  EXPECT_FALSE(lines.Add(candidate));
  EXPECT_EQ(lines.refusals().without_kernel(), 0U);
  CandidateTable table(12, 1);
  table.Add(candidate, "");
  EXPECT_EQ(table.Lines(), std::vector<std::string>{"3/12 kernels judged, 2 screened out  best 0.00x"});
  candidate.screening->correct = false;
  candidate.screening->verdict = "wrong";
  candidate.repeated = true;
  EXPECT_EQ(lines.Said(candidate), "tile: screened out as wrong (judged before)");
}

}  // namespace
}  // namespace kgrpo
