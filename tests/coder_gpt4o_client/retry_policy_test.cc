// Backoff and the retry budget, by a clock that the test sets.
#include "coder_gpt4o/client/retry_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace kgrpo::coder_gpt4o {
namespace {

TEST(Backoff, IsUniformBelowABoundThatDoublesUpToTheCap) {
  const Backoff backoff(0.5, 30, 1);
  const double bounds[] = {0.5, 1, 2, 4, 8, 16, 30, 30};
  for (uint32_t retry = 1; retry <= 8; ++retry) {
    const double bound = bounds[retry - 1];
    double sum = 0;
    double least = bound;
    double most = 0;
    constexpr int kDraws = 4000;
    for (int i = 0; i < kDraws; ++i) {
      const double wait = backoff.Seconds("body " + std::to_string(i), retry);
      sum += wait;
      least = std::min(least, wait);
      most = std::max(most, wait);
    }
    EXPECT_GE(least, 0);
    EXPECT_LT(most, bound);
    EXPECT_NEAR(sum / kDraws, bound / 2, bound * 0.02);  // 4 standard errors: 0.018
    EXPECT_LT(least, bound * 0.01);
    EXPECT_GT(most, bound * 0.99);
  }
}

TEST(Backoff, FollowsFromSeedBodyAndRetryAlone) {
  EXPECT_EQ(Backoff(1, 10, 7).Seconds("x", 2), Backoff(1, 10, 7).Seconds("x", 2));
  std::set<double> different = {Backoff(1, 1, 7).Seconds("x", 1), Backoff(1, 1, 8).Seconds("x", 1),
                                Backoff(1, 1, 7).Seconds("y", 1), Backoff(1, 1, 7).Seconds("x", 2)};
  EXPECT_EQ(different.size(), 4U);
}

TEST(Backoff, ManyRetriesDoNotOverflow) {
  const double wait = Backoff(1, 60, 1).Seconds("x", 4000000000U);
  EXPECT_GE(wait, 0);
  EXPECT_LT(wait, 60);
}

TEST(RetryBudget, GivesTheReserveAtOnceThenByTime) {
  RetryBudget budget(/*ratio=*/0, /*per_second=*/2, /*reserve=*/3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(budget.Wait(100), 0);
    EXPECT_TRUE(budget.Take(100));
  }
  EXPECT_FALSE(budget.Take(100));
  EXPECT_NEAR(budget.Wait(100), 0.5, 1e-6);
  EXPECT_FALSE(budget.Take(100.4));
  EXPECT_TRUE(budget.Take(100.4 + budget.Wait(100.4)));
  EXPECT_DOUBLE_EQ(budget.Available(200), 3);
}

TEST(RetryBudget, TimeThatGoesBackIsNotCountedTwice) {
  RetryBudget budget(0, 1, 10);
  for (int i = 0; i < 10; ++i) budget.Take(100);
  for (int i = 0; i < 5; ++i) {
    budget.OnRequest(90);
    budget.OnRequest(101);
  }
  EXPECT_DOUBLE_EQ(budget.Available(101), 1);
}

TEST(RetryBudget, RequestsEarnRetriesForAMinute) {
  RetryBudget budget(0.5, 1e-9, 2);
  while (budget.Take(0)) {
  }
  budget.OnRequest(0);
  EXPECT_FALSE(budget.Take(0));
  budget.OnRequest(0);
  EXPECT_TRUE(budget.Take(0));
  EXPECT_FALSE(budget.Take(0));
  for (int i = 0; i < 1000; ++i) budget.OnRequest(10);
  for (int i = 0; i < 20; ++i) budget.OnRequest(30);
  EXPECT_NEAR(budget.Available(69), 510, 1e-6);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(budget.Take(69));  // of the older ones
  EXPECT_NEAR(budget.Available(71), 10, 1e-6);
  EXPECT_NEAR(budget.Available(91), 0, 1e-6);
}

// The bound that the header promises, over a storm in which everything fails.
TEST(RetryBudget, NeverGivesMoreThanItsBound) {
  RetryBudget budget(0.2, 1, 10);
  double requests = 0;
  double retries = 0;
  for (double now = 0; now < 60; now += 0.25) {
    budget.OnRequest(now);
    ++requests;
    while (budget.Take(now)) ++retries;
    ASSERT_LE(retries, 10 + 0.2 * requests + now) << now;
  }
  EXPECT_GT(retries, 100);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
