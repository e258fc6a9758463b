// loop/statistics.h and loop/draws.h.
#include "loop/statistics.h"

#include "loop/draws.h"
#include "loop/metrics.h"
#include "loop/samples.h"
#include "test.h"

namespace kgrpo {
namespace {

TEST(StatisticsTest, Moments) {
  const std::vector<double> values = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(Mean(values), 3.75);
  EXPECT_NEAR(StandardDeviation(values), 3.095695936834452, 1e-12);  // numpy.std(ddof=1)
  EXPECT_DOUBLE_EQ(Median(values), 3);
  EXPECT_DOUBLE_EQ(Median({5, 1, 3}), 3);
  EXPECT_NEAR(GeometricMean(values), std::pow(64, 0.25), 1e-12);
  EXPECT_EQ(Mean({}), 0);
  EXPECT_EQ(StandardDeviation(std::vector<double>{1}), 0);
}

TEST(StatisticsTest, BootstrapCoversTheMeanOfANormalSample) {
  // 400 values of a known spread: the half-width of the mean's interval is 1.96 sigma / sqrt(n).
  std::vector<std::vector<double>> groups(2);
  for (int i = 0; i < 400; ++i) groups[static_cast<size_t>(i % 2)].push_back(std::sin(i * 12.9898) * 3);
  std::vector<double> all(groups[0]);
  all.insert(all.end(), groups[1].begin(), groups[1].end());
  const Interval interval = Bootstrap(groups, 1, "t", [](std::span<const double> v) { return Mean(v); });
  EXPECT_DOUBLE_EQ(interval.value, Mean(all));
  const double expected = 1.96 * StandardDeviation(all) / std::sqrt(400.0);
  EXPECT_NEAR(interval.high - interval.value, expected, 0.15 * expected);
  EXPECT_NEAR(interval.value - interval.low, expected, 0.15 * expected);
  const Interval again = Bootstrap(groups, 1, "t", [](std::span<const double> v) { return Mean(v); });
  EXPECT_EQ(again.low, interval.low);
}

TEST(StatisticsTest, BootstrapKeepsGroupsApart) {
  // Two problems without spread: other episodes of the same problems would give the same.
  const Interval interval =
      Bootstrap({{1, 1, 1}, {5, 5, 5}}, 1, "t", [](std::span<const double> v) { return Mean(v); });
  EXPECT_EQ(interval.low, 3);
  EXPECT_EQ(interval.high, 3);
}

TEST(StatisticsTest, OneEpisodeTellsNoInterval) {
  const Interval interval = Bootstrap({{1}, {5, 6}}, 1, "t", [](std::span<const double> v) { return Mean(v); });
  EXPECT_EQ(interval.value, 4);
  EXPECT_TRUE(std::isnan(interval.low));
  EXPECT_TRUE(std::isnan(interval.high));
}

TEST(TallyTest, CountsLabels) {
  Tally tally;
  for (const char* label : {"b", "a", "b", "c"}) tally.Add(label);
  EXPECT_EQ(tally.favourite(), "b");
  EXPECT_DOUBLE_EQ(tally.favourite_share(), 0.5);
  EXPECT_EQ(tally.distinct(), 3u);
  EXPECT_EQ(tally.count("b"), 2u);
  EXPECT_EQ(tally.count("d"), 0u);
  EXPECT_NEAR(tally.entropy(), 1.0397207708399179, 1e-12);  // scipy.stats.entropy([2, 1, 1])
}

TEST(SuggestionTextTest, IsThePolicysWords) {
  EXPECT_EQ(SuggestionText("  Use\n SHARED  memory "), "use shared memory");
  EXPECT_EQ(SuggestionText(" \n"), "");
  EXPECT_EQ(ShownSuggestion("", 10), "(empty)");
  EXPECT_EQ(ShownSuggestion("use shared", 10), "use shared");
  EXPECT_EQ(ShownSuggestion("use shared memory", 10), "use sha...");
  EXPECT_EQ(ShownSuggestion("use sh\u00e4red", 10), "use sh...");
}

// Two wordings that the coder takes for one technique are two suggestions, and one that it took in two ways is one.
TEST(RolloutMetricsTest, SuggestionsAreCountedByThePolicysWords) {
  TrajectoryRecord trajectory;
  for (const auto& [suggestion, summary] :
       {std::pair("Use  tiles", "tiling, tile 32"), std::pair("use tiles", ""),
        std::pair("use tiles ", "tiling, tile 16"), std::pair("shared memory", "tiling, tile 32")}) {
    RoundRecord& round = trajectory.rounds_done.emplace_back();
    round.suggestion = suggestion;
    round.answer.summary = summary;
  }
  const MetricMap metrics = RolloutMetrics({trajectory});
  EXPECT_DOUBLE_EQ(metrics.at("policy/favourite_share"), 0.75);
  EXPECT_EQ(metrics.at("policy/distinct_suggestions"), 2);
  EXPECT_NEAR(metrics.at("policy/suggestion_entropy"), 0.5623351446188083, 1e-12);  // scipy.stats.entropy([3, 1])
}

// Each draw is made by itself, as a resumed run makes it.
TEST(DrawsTest, EachEpochHasEachProblemOnce) {
  for (const size_t count : {1, 2, 3, 5, 7, 8, 10, 22, 25}) {
    for (size_t per_draw = 1; per_draw <= 3 * count + 1; ++per_draw) {
      SCOPED_TRACE(std::to_string(per_draw) + " of " + std::to_string(count));
      std::vector<std::vector<uint32_t>> epochs(1);
      for (uint64_t draw = 0; draw < 3 * count; ++draw) {
        std::vector<size_t> times(count);
        for (const uint32_t index : DrawInEpochs(3, "test", {1}, draw, per_draw, count)) {
          ++times.at(index);
          if (epochs.back().size() == count) epochs.emplace_back();
          epochs.back().push_back(index);
        }
        EXPECT_EQ(std::accumulate(times.begin(), times.end(), size_t{0}), per_draw);
        EXPECT_LE(std::ranges::max(times), (per_draw + count - 1) / count) << "draw " << draw;
      }
      EXPECT_EQ(epochs.size(), 3 * per_draw);
      for (const std::vector<uint32_t>& epoch : epochs)
        EXPECT_EQ(std::set<uint32_t>(epoch.begin(), epoch.end()).size(), count);
      if (count > 3) {
        EXPECT_GT(std::set<std::vector<uint32_t>>(epochs.begin(), epochs.end()).size(), 1U);
      }
    }
  }
}

// The order that avoids repeats across a border favours nothing: each index is at each place equally often.
TEST(DrawsTest, NoProblemStaysAtOnePlaceOfItsEpochs) {
  constexpr size_t kCount = 10, kPerDraw = 7, kDraws = 20000;
  std::vector<std::vector<size_t>> times(kCount, std::vector<size_t>(kCount));
  size_t position = 0;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    for (const uint32_t index : DrawInEpochs(3, "test", {}, draw, kPerDraw, kCount)) {
      ++times[index][position++ % kCount];
    }
  }
  const double expected = static_cast<double>(kDraws * kPerDraw) / (kCount * kCount);
  for (const auto& places : times) {
    for (const size_t count : places) EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected));
  }
}

TEST(DrawsTest, AssignmentsAreGroupsOnTheDrawnProblems) {
  const std::vector<std::string> families = {"a", "b", "c", "d", "e"};
  std::vector<std::vector<uint32_t>> drawn;
  for (uint64_t draw = 0; draw < 10; ++draw) {
    const auto assignments = DrawAssignments(3, Purpose::kTrain, 0, draw, 14, 2, families, false);
    ASSERT_EQ(assignments.size(), 14u);
    drawn.emplace_back();
    for (size_t i = 0; i < 14; ++i) {
      EXPECT_EQ(assignments[i].prompt_of, i);
      EXPECT_EQ(assignments[i].problem, assignments[i - i % 2].problem);  // two in a row
      if (i % 2 == 0) drawn.back().push_back(assignments[i].problem);
    }
    EXPECT_EQ(drawn.back(), DrawInEpochs(3, "problems", {static_cast<uint64_t>(Purpose::kTrain), 0}, draw, 7, 5));
  }
  EXPECT_NE(drawn[0], drawn[1]);
}

TEST(DrawsTest, ShuffledPromptsSpeakOfAnotherProblem) {
  const std::vector<std::string> families(6, "all alike");
  for (uint64_t step = 1; step <= 20; ++step) {
    const auto assignments = DrawAssignments(3, Purpose::kTrain, 0, step, 8, 2, families, true);
    std::set<uint32_t> spoken_of;
    for (size_t i = 0; i < assignments.size(); ++i) {
      EXPECT_NE(assignments[assignments[i].prompt_of].problem, assignments[i].problem);
      EXPECT_EQ(assignments[i].prompt_of % 2, i % 2);  // the same one of the two on that problem
      spoken_of.insert(assignments[i].prompt_of);
    }
    EXPECT_EQ(spoken_of.size(), 8u);
  }
}

TEST(DrawsTest, ShuffledPromptsComeFromAnotherFamilyWherePossible) {
  const std::vector<std::string> families = {"a", "a", "b", "b", "c", "c", "d"};
  std::set<std::vector<size_t>> seen;
  for (uint64_t key = 0; key < 20; ++key) {
    // More draws than problems: some are drawn twice.
    const std::vector<uint32_t> drawn = {0, 1, 2, 3, 4, 5, 6, 0, 2, 6};
    KeyedStream random(3, "test", {key});
    const std::vector<size_t> others = DrawOtherProblems(random, drawn, families);
    for (size_t i = 0; i < drawn.size(); ++i) EXPECT_NE(families[drawn[i]], families[drawn[others[i]]]);
    EXPECT_EQ(std::set<size_t>(others.begin(), others.end()).size(), drawn.size());
    seen.insert(others);
  }
  EXPECT_GT(seen.size(), 10U);

  // Most are of one family, each drawn twice: another problem of it, then.
  const std::vector<uint32_t> mostly = {0, 1, 2, 0, 1, 2};
  KeyedStream random(3, "mostly", {0});
  const std::vector<size_t> others = DrawOtherProblems(random, mostly, std::vector<std::string>{"a", "a", "a"});
  for (size_t i = 0; i < mostly.size(); ++i) EXPECT_NE(mostly[others[i]], mostly[i]);
}

TEST(SamplesTest, ShuffledRewardsStayInPairs) {
  std::vector<kgrpo_sample> samples(50);
  for (size_t i = 0; i < 50; ++i) {
    samples[i].reward = static_cast<double>(i);
    samples[i].idle_reward = static_cast<double>(i) + 0.5;
    samples[i].trajectory = i;
  }
  ShuffleRewards(samples, 1, 1);
  std::set<double> rewards;
  size_t moved = 0;
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(samples[i].idle_reward, samples[i].reward + 0.5);
    EXPECT_EQ(samples[i].trajectory, i);
    moved += samples[i].reward != static_cast<double>(i) ? 1 : 0;
    rewards.insert(samples[i].reward);
  }
  EXPECT_EQ(rewards.size(), 50u);
  EXPECT_GT(moved, 40u);
}

}  // namespace
}  // namespace kgrpo
