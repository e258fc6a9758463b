// Rate limits and the number in flight, by a clock that the test sets.
#include "coder_gpt4o/client/rate_limits.h"

#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

LimitSnapshot Snapshot(double limit, double remaining, double reset) { return {limit, remaining, reset}; }

TEST(RateLimits, LearnsWhatTheServiceSays) {
  RateLimits limits(3600);
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
  RateLimits limits(3600);
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

// Such a limit is tested by sending: a real one is answered by 429 and how long to wait.
TEST(RateLimits, AReportedLimitDoesNotHoldARequestForLongerThanAnOutageMayLast) {
  RateLimits limits(3600);
  ResponseHeaders headers;
  headers.requests = Snapshot(20, 0, 20 * 3599);
  limits.Learn(0, headers);
  EXPECT_NEAR(limits.Wait(0, 0), 3599, 1e-6);
  headers.requests = Snapshot(20, 0, 20 * 3601);
  limits.Learn(0, headers);
  EXPECT_EQ(limits.Wait(0, 0), 0);
}

TEST(Backoff, IsUniformBelowABoundThatDoublesUpToTheCap) {
  const double bounds[] = {0.5, 1, 2, 4, 8, 16, 30, 30};
  for (uint32_t retry = 1; retry <= 8; ++retry) {
    const double bound = bounds[retry - 1];
    double sum = 0;
    double least = bound;
    double most = 0;
    constexpr int kDraws = 4000;
    for (int i = 0; i < kDraws; ++i) {
      const double wait = BackoffSeconds(0.5, 30, 1, "body " + std::to_string(i), retry);
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
  EXPECT_EQ(BackoffSeconds(1, 10, 7, "x", 2), BackoffSeconds(1, 10, 7, "x", 2));
  std::set<double> different = {BackoffSeconds(1, 1, 7, "x", 1), BackoffSeconds(1, 1, 8, "x", 1),
                                BackoffSeconds(1, 1, 7, "y", 1), BackoffSeconds(1, 1, 7, "x", 2)};
  EXPECT_EQ(different.size(), 4U);
}

TEST(ConcurrencyLimit, FallsToWhatIsAnsweredAndRecovers) {
  ConcurrencyLimit limit(64, 0.5, 30);
  EXPECT_EQ(limit.Limit(), 64U);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(limit.OnOverload(10, 9), 0);
    limit.OnAnswer();
  }
  EXPECT_NEAR(limit.Limit(), 64 - 32 * 0.9, 1);
  for (int i = 0; i < 1000; ++i) limit.OnAnswer();
  EXPECT_EQ(limit.Limit(), 64U);
}

TEST(ConcurrencyLimit, PausesOnceForAVolleyAndLongerForTheNext) {
  ConcurrencyLimit limit(64, 0.5, 3);
  double pauses = 0;
  for (int i = 0; i < 64; ++i) pauses += limit.OnOverload(10, 9);
  EXPECT_DOUBLE_EQ(pauses, 0.5);
  EXPECT_EQ(limit.Limit(), 1U);
  EXPECT_DOUBLE_EQ(limit.OnOverload(11, 10.5), 1);
  EXPECT_DOUBLE_EQ(limit.OnOverload(12, 10.9), 0);  // sent before that pause
  EXPECT_DOUBLE_EQ(limit.OnOverload(13, 12), 2);
  EXPECT_DOUBLE_EQ(limit.OnOverload(16, 15), 3);
  limit.OnAnswer();
  EXPECT_EQ(limit.Limit(), 2U);
  EXPECT_DOUBLE_EQ(limit.OnOverload(21, 20), 0);
  EXPECT_DOUBLE_EQ(limit.OnOverload(22, 21), 0.5);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
