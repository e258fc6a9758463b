// Backoff and the retry budget, by a clock that the test sets.
#include "coder_gpt4o/client/retry_policy.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(budget.Take(100), 0);
  EXPECT_EQ(budget.Take(100), 0);
  EXPECT_EQ(budget.Take(100), 0);
  EXPECT_DOUBLE_EQ(budget.Take(100), 0.5);
  EXPECT_DOUBLE_EQ(budget.Take(100), 1.0);
  EXPECT_DOUBLE_EQ(budget.Take(101), 0.5);  // two came, one more is owed
  EXPECT_DOUBLE_EQ(budget.Level(101), -1);
  EXPECT_DOUBLE_EQ(budget.Level(200), 3);
}

TEST(RetryBudget, RequestsEarnRetries) {
  RetryBudget budget(0.5, 0.001, 2);
  for (int i = 0; i < 2; ++i) budget.Take(0);
  EXPECT_GT(budget.Take(0), 100);
  for (int i = 0; i < 4; ++i) budget.OnRequest(0);
  EXPECT_EQ(budget.Take(0), 0);
  EXPECT_GT(budget.Take(0), 100);
  for (int i = 0; i < 1000; ++i) budget.OnRequest(0);
  EXPECT_DOUBLE_EQ(budget.Level(0), 2);  // it saves up no more than the reserve
}

// The bound that the header promises, over a storm in which everything fails.
TEST(RetryBudget, NeverSendsMoreThanItsBound) {
  RetryBudget budget(0.2, 1, 10);
  double requests = 0;
  std::multiset<double> sent;
  for (double now = 0; now < 60; now += 0.25) {
    budget.OnRequest(now);
    ++requests;
    for (int i = 0; i < 3; ++i) sent.insert(now + budget.Take(now));
    const auto by_now = static_cast<double>(std::distance(sent.begin(), sent.upper_bound(now)));
    ASSERT_LE(by_now, 10 + 0.2 * requests + now + 1e-6) << now;
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
