// Rate limits and the number in flight, by a clock that the test sets.
#include "coder_gpt4o/client/rate_limits.h"

#include <gtest/gtest.h>

#include <deque>

namespace kgrpo::coder_gpt4o {
namespace {

// How many requests of `tokens` go out between `begin` and `end`, each as soon as it may.
int SendAll(RateLimits& limits, double begin, double end, uint64_t tokens, std::deque<double>* times = nullptr) {
  int sent = 0;
  for (double now = begin;; ++sent) {
    now += limits.Wait(now, tokens);
    if (now >= end) return sent;
    limits.Take(now, tokens);
    if (times != nullptr) times->push_back(now);
  }
}

TEST(RateLimits, NothingConfiguredLimitsNothing) {
  RateLimits limits(0, 0);
  for (int i = 0; i < 100000; ++i) limits.Take(5, 1000000);
  EXPECT_EQ(limits.Wait(5, 1000000), 0);
}

TEST(RateLimits, KeepsRequestsAMinuteInEveryMinute) {
  RateLimits limits(120, 0);
  std::deque<double> times;
  const int sent = SendAll(limits, 1000, 1600, 5000, &times);
  EXPECT_NEAR(sent, 1200, 3);
  for (size_t i = 0; i + 122 < times.size(); ++i) ASSERT_GE(times[i + 122] - times[i], 60 - 1e-6) << i;
}

TEST(RateLimits, KeepsTokensAMinute) {
  RateLimits limits(0, 60000);
  EXPECT_NEAR(SendAll(limits, 0, 600, 3000), 203, 1);  // 200, and the burst of 10 s at first
}

TEST(RateLimits, ARequestLargerThanTheBucketStillGoes) {
  RateLimits limits(0, 6000);
  EXPECT_EQ(limits.Wait(0, 5000), 0);
  limits.Take(0, 5000);
  EXPECT_NEAR(limits.Wait(0, 5000), 50, 1e-6);  // what it took is earned back before the next goes
  EXPECT_NEAR(SendAll(limits, 0, 3000, 5000), 60, 1);
}

LimitSnapshot Snapshot(double limit, double remaining, double reset) {
  return {limit, remaining, reset};
}

TEST(RateLimits, LearnsWhatTheServiceSays) {
  RateLimits limits(0, 0);
  ResponseHeaders headers;
  headers.requests = Snapshot(500, 2, 59.76);  // 500 a minute
  limits.Learn(10, headers);
  EXPECT_EQ(limits.Wait(10, 0), 0);
  limits.Take(10, 0);
  limits.Take(10, 0);
  EXPECT_NEAR(limits.Wait(10, 0), 0.12, 1e-9);
  EXPECT_EQ(limits.Wait(10.13, 0), 0);
}

TEST(RateLimits, LearnsTokensOnTheirOwn) {
  RateLimits limits(0, 0);
  ResponseHeaders headers;
  headers.tokens = Snapshot(30000, 1000, 58);
  limits.Learn(0, headers);
  EXPECT_EQ(limits.Wait(0, 1000), 0);
  EXPECT_NEAR(limits.Wait(0, 4000), 6, 1e-9);
}

// OpenAI's request headers speak of the day where the day's limit is the nearer one.
TEST(RateLimits, TellsADailyLimitByItsReset) {
  TokenBucket bucket;
  bucket.Learn(0, Snapshot(10000, 9999, 8.64));
  bucket.Take(0, 9999);
  EXPECT_NEAR(bucket.Wait(0, 1), 8.64, 1e-6);
}

TEST(RateLimits, OlderNewsDoesNotRaiseTheLevel) {
  TokenBucket bucket;
  bucket.Learn(0, Snapshot(100, 10, 54));
  bucket.Take(0, 8);                        // under way: the service has not counted them
  bucket.Learn(0, Snapshot(100, 9, 54.6));  // of a request sent before these
  EXPECT_EQ(bucket.Wait(0, 2), 0);
  EXPECT_GT(bucket.Wait(0, 3), 0);
}

TEST(RateLimits, IgnoresSnapshotsThatSayNothing) {
  TokenBucket bucket;
  bucket.Learn(0, {});
  bucket.Learn(0, {std::nullopt, 0, 1});
  bucket.Learn(0, {0, 0, 1});
  EXPECT_EQ(bucket.Wait(0, 1e9), 0);
  bucket.Learn(0, Snapshot(60, 0, 1e12));  // a year and more is no limit's time
  EXPECT_LE(bucket.Wait(0, 1), 31 * 86400);
}

TEST(RateLimits, PausesForAsLongAsToldAndNoLonger) {
  RateLimits limits(0, 0);
  limits.Pause(0, 20);
  limits.Pause(1, 5);
  EXPECT_DOUBLE_EQ(limits.Wait(2, 1), 18);
  EXPECT_DOUBLE_EQ(limits.Wait(20, 1), 0);
}

TEST(ConcurrencyLimit, HalvesOnOverloadAndRecoversSlowly) {
  ConcurrencyLimit limit(64);
  EXPECT_EQ(limit.Limit(), 64U);
  EXPECT_TRUE(limit.OnOverload(10, 9));
  EXPECT_EQ(limit.Limit(), 32U);
  for (int i = 0; i < 63; ++i) EXPECT_FALSE(limit.OnOverload(10.5, 9.5));  // sent before it was lowered
  EXPECT_EQ(limit.Limit(), 32U);
  for (int i = 0; i < 20; ++i) limit.OnOverload(11 + i, 10.9 + i);
  EXPECT_EQ(limit.Limit(), 1U);
  limit.OnAnswer();
  EXPECT_EQ(limit.Limit(), 2U);
  for (int i = 0; i < 100; ++i) limit.OnAnswer();
  EXPECT_NEAR(limit.Limit(), 14, 1);  // square root of twice the answers
  for (int i = 0; i < 100000; ++i) limit.OnAnswer();
  EXPECT_EQ(limit.Limit(), 64U);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
