// Returns and advantages: against TRL's (tests/golden/trainer/make_losses.py), by hand, and their properties.
#include "trainer_grpo/advantage.h"

#include "test.h"

namespace kgrpo::grpo {
namespace {

// `trajectories` of `rounds` each, two problems in turn.
std::vector<RoundOutcome> RandomBatch(uint64_t seed, size_t trajectories, uint32_t rounds) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<RoundOutcome> batch;
  for (size_t i = 0; i < trajectories; ++i) {
    for (uint32_t round = 0; round < rounds; ++round) {
      batch.push_back({normal(engine), std::abs(normal(engine)), 100 + i, round, rounds, static_cast<uint32_t>(i % 2)});
    }
  }
  return batch;
}

TEST(Advantage, EqualsTrl) {
  const json golden = json::parse(std::ifstream(KGRPO_BINARY_DIR "/test_data/trainer/losses.json"));
  const auto rewards = golden.at("rewards").get<std::vector<double>>();
  std::vector<RoundOutcome> batch;
  for (size_t i = 0; i < rewards.size(); ++i) batch.push_back({rewards[i], 0, i, 0, 1, static_cast<uint32_t>(i / 3)});
  AdvantageOptions options;
  options.group = AdvantageGroup::kProblem;
  for (const auto& [name, scale] : std::vector<std::pair<std::string, AdvantageScale>>{
           {"group", AdvantageScale::kGroup}, {"batch", AdvantageScale::kBatch}, {"none", AdvantageScale::kNone}}) {
    SCOPED_TRACE(name);
    options.scale = scale;
    const auto expected = golden.at("advantages").at(name).at("values").get<std::vector<double>>();
    const Advantages computed = ComputeAdvantages(options, batch);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(computed.advantages[i], expected[i], 1e-9) << i;
    EXPECT_EQ(computed.zero_variance, (std::vector<bool>{false, false, false, true, true, true}));
  }
}

TEST(Advantage, ReturnsAreDiscountedWithinTheTrajectory) {
  const std::vector<RoundOutcome> batch = {
      {1, 0, 7, 0, 3, 0}, {10, 0, 8, 0, 3, 0}, {2, 0, 7, 1, 3, 0}, {4, 0, 7, 2, 3, 0}};
  AdvantageOptions options;
  options.gamma = 0.5;
  EXPECT_EQ(ComputeAdvantages(options, batch).returns, (std::vector<double>{1 + 1 + 1, 10, 2 + 2, 4}));
  options.gamma = 0;
  EXPECT_EQ(ComputeAdvantages(options, batch).returns, (std::vector<double>{1, 10, 2, 4}));
  // A round that was dropped leaves a gap in time, not a shorter one.
  const std::vector<RoundOutcome> gap = {{1, 0, 7, 0, 3, 0}, {4, 0, 7, 2, 3, 0}};
  options.gamma = 0.5;
  EXPECT_EQ(ComputeAdvantages(options, gap).returns, (std::vector<double>{2, 4}));
  EXPECT_EQ(ComputeAdvantages(options, gap).cut, (std::vector<bool>{true, false}));
}

TEST(Advantage, CutReturnsTakeNoPart) {
  const auto all = RandomBatch(6, 9, 4);
  std::vector<RoundOutcome> batch, whole;  // with trajectories that ended early, and without them
  for (const RoundOutcome& sample : all) {
    const auto played = static_cast<uint32_t>(sample.trajectory % 3 == 0 ? 1 + sample.trajectory % 4 : 4);
    if (sample.round >= played) continue;
    batch.push_back(sample);
    if (played == 4) whole.push_back(sample);
  }
  ASSERT_LT(whole.size(), batch.size());
  for (AdvantageGroup group : {AdvantageGroup::kBatch, AdvantageGroup::kProblem, AdvantageGroup::kProblemRound}) {
    for (AdvantageScale scale : {AdvantageScale::kGroup, AdvantageScale::kBatch, AdvantageScale::kRootMeanSquare}) {
      for (const bool leave_one_out : {false, true}) {
        AdvantageOptions options;
        options.group = group;
        options.scale = scale;
        options.leave_one_out = options.idle_baseline = leave_one_out;
        const Advantages computed = ComputeAdvantages(options, batch), expected = ComputeAdvantages(options, whole);
        size_t next = 0;
        for (size_t i = 0; i < batch.size(); ++i) {
          if (computed.cut[i]) {
            EXPECT_EQ(computed.advantages[i], 0);
            continue;
          }
          ASSERT_EQ(batch[i].trajectory, whole[next].trajectory);
          EXPECT_EQ(computed.advantages[i], expected.advantages[next]);
          EXPECT_FALSE(expected.cut[next++]);
        }
        EXPECT_EQ(next, whole.size());
        options.gamma = 0;  // a return is the round's own reward
        for (const bool cut : ComputeAdvantages(options, batch).cut) EXPECT_FALSE(cut);
      }
    }
  }
}

// A coder that fails for a quarter of the requests from the second round on, whatever the policy suggested.
TEST(Advantage, AFailureThatDependsOnNothingChangesNoMeanAdvantage) {
  const auto all = RandomBatch(7, 4000, 4);
  std::vector<RoundOutcome> batch, shorter;  // the latter as if the trajectories had been planned that short
  std::mt19937_64 engine(8);
  for (size_t first = 0; first < all.size(); first += 4) {
    uint32_t played = 1;
    while (played < 4 && engine() % 4 != 0) ++played;
    for (uint32_t round = 0; round < played; ++round) {
      // A kernel is faster than the reference on average: rewards are positive.
      for (auto* samples : {&batch, &shorter}) {
        samples->push_back(all[first + round]);
        samples->back().reward += 1.5;
      }
      shorter.back().rounds = played;
    }
  }
  for (AdvantageGroup group : {AdvantageGroup::kProblem, AdvantageGroup::kProblemRound}) {
    AdvantageOptions options;
    options.group = group;
    // Mean advantage by round of the last rounds before a failure, and of all other samples.
    const auto means = [&](const std::vector<RoundOutcome>& samples, bool before_failure) {
      const Advantages computed = ComputeAdvantages(options, samples);
      std::vector<double> sums(4), counts(4);
      for (size_t i = 0; i < samples.size(); ++i) {
        const bool last = i + 1 == samples.size() || samples[i + 1].trajectory != samples[i].trajectory;
        const uint32_t round = samples[i].round;
        if ((last && round < 3) != before_failure || computed.cut[i] != before_failure) continue;
        sums[round] += computed.advantages[i];
        ++counts[round];
      }
      for (size_t round = 0; round < 4; ++round) sums[round] /= std::max(counts[round], 1.0);
      return sums;
    };
    std::vector<RoundOutcome> complete = all;
    for (RoundOutcome& sample : complete) sample.reward += 1.5;
    const std::vector<double> unbiased = means(complete, false), kept = means(batch, false);
    for (size_t round = 0; round < 4; ++round) {
      EXPECT_NEAR(kept[round], unbiased[round], group == AdvantageGroup::kProblemRound ? 1e-9 : 0.06) << round;
    }
    EXPECT_EQ(means(batch, true), std::vector<double>(4)) << "no part in the loss";
    if (group == AdvantageGroup::kProblem) continue;
    // What a trainer makes of it that takes the failure for the trajectory's planned end.
    const Advantages biased = ComputeAdvantages(options, shorter);
    double sum = 0, count = 0;
    for (size_t i = 0; i < shorter.size(); ++i) {
      if (shorter[i].round + 1 != shorter[i].rounds || shorter[i].round == 3) continue;
      sum += biased.advantages[i];
      ++count;
    }
    EXPECT_LT(sum / count, -0.3);
  }
}

TEST(Advantage, TheIdleBaselineIsTheReturnOfDoingNothing) {
  // Rewards equal to the idle rewards throughout: nothing was gained anywhere, so every value is 0.
  std::vector<RoundOutcome> batch;
  for (uint32_t round = 0; round < 4; ++round) batch.push_back({1.3, 1.3, 1, round, 4, 0});
  batch.push_back({2.3, 1.3, 2, 3, 4, 0});  // and 1 more than idle
  AdvantageOptions options;
  options.idle_baseline = true;
  options.scale = AdvantageScale::kNone;
  const Advantages computed = ComputeAdvantages(options, batch);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(computed.advantages[i], -0.2, 1e-12);
  EXPECT_NEAR(computed.advantages[4], 0.8, 1e-12);
  EXPECT_NEAR(computed.returns[0], 1.3 * (1 + 0.4 + 0.16 + 0.064), 1e-12);
}

TEST(Advantage, LeaveOneOutIsTheDifferenceFromTheOthersMean) {
  const auto batch = RandomBatch(1, 5, 3);
  AdvantageOptions options;
  options.scale = AdvantageScale::kNone;
  options.leave_one_out = true;
  for (AdvantageGroup group : {AdvantageGroup::kBatch, AdvantageGroup::kProblem, AdvantageGroup::kProblemRound}) {
    options.group = group;
    const Advantages computed = ComputeAdvantages(options, batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      double sum = 0;
      int others = 0;
      for (size_t j = 0; j < batch.size(); ++j) {
        const bool together = group == AdvantageGroup::kBatch ||
                              (batch[i].problem == batch[j].problem &&
                               (group == AdvantageGroup::kProblem || batch[i].round == batch[j].round));
        if (i == j || !together) continue;
        sum += computed.returns[j];
        ++others;
      }
      ASSERT_GT(others, 0);
      EXPECT_NEAR(computed.advantages[i], computed.returns[i] - sum / others, 1e-12);
    }
  }
}

AdvantageOptions BestOf(uint32_t k) {
  AdvantageOptions options;
  options.gamma = 0;
  options.scale = AdvantageScale::kNone;
  options.estimator = AdvantageEstimator::kMaxAtK;
  options.best_of = k;
  return options;
}

std::vector<double> AdvantagesOf(const AdvantageOptions& options, const std::vector<double>& rewards) {
  std::vector<RoundOutcome> batch;
  for (const double reward : rewards) batch.push_back({reward, 0, batch.size(), 0, 1, 0});
  return ComputeAdvantages(options, batch).advantages;
}

// tests/golden/trainer/make_best_of.py enumerates all subsets of each group.
TEST(Advantage, MaxAtKIsTheMeanOverAllSubsets) {
  const json golden = json::parse(std::ifstream(KGRPO_BINARY_DIR "/test_data/trainer/best_of.json"));
  ASSERT_EQ(golden.size(), 8U);
  for (const json& c : golden) {
    const auto rewards = c.at("rewards").get<std::vector<double>>();
    for (const auto& [k, expected] : c.at("max_at_k").items()) {
      const std::vector<double> advantages = AdvantagesOf(BestOf(static_cast<uint32_t>(std::stoul(k))), rewards);
      for (size_t i = 0; i < rewards.size(); ++i) {
        const double value = expected.at(i).get<double>();
        EXPECT_NEAR(advantages[i], value, 1e-9 * (1 + std::abs(value))) << c.at("rewards") << " " << k << " " << i;
      }
    }
  }
}

// No subset of k is without the sample: the baseline is the largest of the others.
TEST(Advantage, MaxAtTheGroupsSizeRewardsOnlyTheBest) {
  for (const uint32_t k : {3U, 8U}) {
    EXPECT_THAT(AdvantagesOf(BestOf(k), {2, 4, 1}), ::testing::Pointwise(::testing::DoubleNear(1e-12), {0.0, 6.0, 0.0}))
        << k;
  }
  EXPECT_THAT(AdvantagesOf(BestOf(2), {3, 3, 3}), ::testing::Each(0.0)) << "nothing to learn from";
}

TEST(Advantage, CutReturnsTakeNoPartInMaxAtK) {
  AdvantageOptions options = BestOf(2);
  options.gamma = 0.5;
  std::vector<RoundOutcome> batch = {{1, 0, 0, 0, 1, 0}, {2, 0, 1, 0, 1, 0}, {5, 0, 2, 0, 1, 0}};
  const std::vector<double> whole = ComputeAdvantages(options, batch).advantages;
  batch.push_back({100, 0, 3, 0, 2, 0});  // its round 1 is missing
  std::vector<double> with_cut = ComputeAdvantages(options, batch).advantages;
  EXPECT_EQ(with_cut.back(), 0);
  with_cut.pop_back();
  EXPECT_EQ(with_cut, whole);
}

TEST(Advantage, TheBestOfOneIsTheLeaveOneOutMean) {
  const auto batch = RandomBatch(9, 8, 4);
  AdvantageOptions mean;
  mean.group = AdvantageGroup::kProblemRound;
  mean.leave_one_out = true;
  AdvantageOptions best = mean;
  best.estimator = AdvantageEstimator::kMaxAtK;
  best.best_of = 1;
  const auto one = ComputeAdvantages(best, batch).advantages, expected = ComputeAdvantages(mean, batch).advantages;
  for (size_t i = 0; i < batch.size(); ++i) EXPECT_NEAR(one[i], expected[i], 1e-9);
}

TEST(Advantage, GroupsSumToZeroAndHaveUnitSpread) {
  const auto batch = RandomBatch(2, 8, 4);
  AdvantageOptions options;
  options.group = AdvantageGroup::kProblem;
  const Advantages computed = ComputeAdvantages(options, batch);
  for (uint32_t problem : {0u, 1u}) {
    double sum = 0, squares = 0;
    int count = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch[i].problem != problem) continue;
      sum += computed.advantages[i];
      squares += computed.advantages[i] * computed.advantages[i];
      ++count;
    }
    EXPECT_NEAR(sum, 0, 1e-9);
    EXPECT_NEAR(squares / (count - 1), 1, 1e-3);
  }
}

TEST(Advantage, RootMeanSquareScaleHasUnitRootMeanSquareAndCapBounds) {
  const auto batch = RandomBatch(3, 8, 4);
  AdvantageOptions options;
  options.group = AdvantageGroup::kProblem;
  options.leave_one_out = true;
  options.scale = AdvantageScale::kRootMeanSquare;
  const auto scaled = ComputeAdvantages(options, batch).advantages;
  EXPECT_NEAR(
      std::inner_product(scaled.begin(), scaled.end(), scaled.begin(), 0.0) / static_cast<double>(scaled.size()), 1,
      1e-3);
  options.cap = 0.8;
  const auto capped = ComputeAdvantages(options, batch).advantages;
  EXPECT_EQ(*std::max_element(capped.begin(), capped.end()), 0.8);
  EXPECT_EQ(*std::min_element(capped.begin(), capped.end()), -0.8);
}

TEST(Advantage, OrderOfTheSamplesDoesNotMatter) {
  const auto batch = RandomBatch(4, 6, 4);
  std::vector<size_t> order(batch.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(5));
  std::vector<RoundOutcome> shuffled;
  for (size_t index : order) shuffled.push_back(batch[index]);
  AdvantageOptions options;
  options.group = AdvantageGroup::kProblemRound;
  options.idle_baseline = true;
  const auto straight = ComputeAdvantages(options, batch).advantages;
  const auto mixed = ComputeAdvantages(options, shuffled).advantages;
  for (size_t i = 0; i < order.size(); ++i) EXPECT_NEAR(mixed[i], straight[order[i]], 1e-12);
}

TEST(Advantage, WhatStandsAloneHasNoAdvantage) {
  const std::vector<RoundOutcome> batch = {{5, 0, 1, 0, 1, 0}, {1, 0, 2, 0, 1, 1}, {3, 0, 3, 0, 1, 1}};
  AdvantageOptions options;
  options.group = AdvantageGroup::kProblem;
  for (bool leave_one_out : {false, true}) {
    options.leave_one_out = leave_one_out;
    const Advantages computed = ComputeAdvantages(options, batch);
    EXPECT_EQ(computed.advantages[0], 0);
    EXPECT_TRUE(computed.zero_variance[0]);
    EXPECT_LT(computed.advantages[1], 0);
    EXPECT_GT(computed.advantages[2], 0);
  }
}

// The mean of three 0.1 is not 0.1 in floating point.
TEST(Advantage, EqualReturnsHaveNoAdvantage) {
  const std::vector<RoundOutcome> batch = {{0.1, 0, 1, 0, 1, 0}, {0.1, 0, 2, 0, 1, 0}, {0.1, 0, 3, 0, 1, 0}};
  for (const AdvantageScale scale : {AdvantageScale::kGroup, AdvantageScale::kRootMeanSquare, AdvantageScale::kNone}) {
    AdvantageOptions options;
    options.scale = scale;
    EXPECT_EQ(ComputeAdvantages(options, batch).advantages, std::vector<double>(3));
  }
}

TEST(Advantage, ContradictoryTrajectoriesAreRefused) {
  const std::vector<RoundOutcome> twice = {{1, 0, 7, 0, 2, 0}, {1, 0, 7, 0, 2, 0}};
  const std::vector<RoundOutcome> past = {{1, 0, 7, 2, 2, 0}};
  EXPECT_EQ(test::MessageOf([&] { ComputeAdvantages({}, twice); }),
            "sample 1: trajectory 7, round 0 appears twice: give each trajectory of a batch its own number");
  EXPECT_EQ(test::MessageOf([&] { ComputeAdvantages({}, past); }),
            "sample 0: trajectory 7, round 2 is past the trajectory's 2 rounds");
}

}  // namespace
}  // namespace kgrpo::grpo
