// When an attempt may be sent, by a clock that the test sets.
#include "coder_gpt4o/client/limiter.h"

#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

ClientOptions Options(double outage = 3600, double first = 60) {
  ClientOptions options;
  options.max_concurrency = 64;
  options.outage_failures = 4;
  options.max_attempts = 2;
  options.probe_pause_cap_seconds = 30;
  options.max_outage_seconds = outage;
  options.max_first_outage_seconds = first;
  return options;
}

// Of a service that was there once.
Limiter Contacted(double outage = 3600) {
  Limiter limiter(Options(outage));
  limiter.OnContact();
  return limiter;
}

Limiter Down(double outage = 3600) {
  Limiter limiter = Contacted(outage);
  for (uint64_t request = 1; request <= 4; ++request) limiter.OnFailure(0, 0, request, false);
  return limiter;
}

TEST(Limiter, PausesUntilAReportedLimitHasRoom) {
  const auto wait = [](const LimitSnapshot& requests, const LimitSnapshot& tokens) {
    Limiter limiter = Contacted();
    ResponseHeaders headers;
    headers.requests = requests;
    headers.tokens = tokens;
    limiter.Learn(10, headers, 4000);
    return limiter.Wait(10);
  };
  EXPECT_EQ(wait({500, 2, 59.76}, {30000, 4000, 52}), 0);
  EXPECT_NEAR(wait({500, 0, 60}, {}), 0.12, 1e-9);
  EXPECT_NEAR(wait({}, {30000, 1000, 58}), 6, 1e-9);
  EXPECT_NEAR(wait({}, {3000, 1000, 60}), 60, 1e-9);  // more than the limit: all of it
  EXPECT_NEAR(wait({100, 0, 86400}, {}), 864, 1e-9);  // of a day
  EXPECT_EQ(wait({20, 0, 20 * 3601.0}, {}), 0);       // tried: a real one is answered by 429
  EXPECT_EQ(wait({{}, 0, 60}, {0, 0, 60}), 0);
}

TEST(Limiter, NoMoreAreInFlightThanAreLeft) {
  Limiter limiter = Contacted();
  ResponseHeaders headers;
  headers.requests = {500, 2, 59};
  limiter.Learn(10, headers, 0);
  EXPECT_EQ(limiter.Most(10), 2u);
  EXPECT_EQ(limiter.Most(70), 64u);
  headers.requests = {500, 0, 59};
  limiter.Learn(70, headers, 0);
  EXPECT_EQ(limiter.Most(70), 1u);
  limiter.Learn(71, {}, 0);
  EXPECT_EQ(limiter.Most(71), 64u);
}

TEST(Limiter, AShorterPauseDoesNotEndALongerOne) {
  Limiter limiter = Contacted();
  limiter.Pause(0, 10);
  limiter.Pause(1, 2);
  EXPECT_EQ(limiter.Wait(4), 6);
}

TEST(Limiter, TheNumberInFlightFallsToWhatIsAnsweredAndRecovers) {
  Limiter limiter = Contacted();
  for (int i = 0; i < 32; ++i) {
    limiter.OnOverload();
    limiter.OnAnswer();
  }
  EXPECT_NEAR(static_cast<double>(limiter.Most(0)), 64 - 32 * 0.9, 1);
  for (int i = 0; i < 100; ++i) limiter.OnOverload();
  EXPECT_EQ(limiter.Most(0), 1u);
  for (int i = 0; i < 1000; ++i) limiter.OnAnswer();
  EXPECT_EQ(limiter.Most(0), 64u);
}

TEST(Limiter, AnOutageBeginsAfterFailuresOfSeveralRequestsInARow) {
  Limiter limiter = Contacted();
  for (int i = 0; i < 100; ++i) limiter.OnFailure(0, 0, 1 + i % 2, false);
  EXPECT_FALSE(limiter.Down());  // two bad prompts
  limiter.OnFailure(2, 0, 3, false);
  EXPECT_TRUE(limiter.Down());
  EXPECT_DOUBLE_EQ(limiter.Wait(2), 5);
  EXPECT_DOUBLE_EQ(limiter.OutageSeconds(), 2);  // since the first of them
}

TEST(Limiter, BeforeTheFirstContactOneRequestIsEnough) {
  Limiter limiter(Options());
  limiter.OnFailure(0, 0, 1, false);
  EXPECT_FALSE(limiter.Down());
  limiter.OnFailure(1, 0, 1, false);
  EXPECT_DOUBLE_EQ(limiter.Wait(1), 5);
}

TEST(Limiter, LetsOneProbeOutAtATimeAndDoublesThePause) {
  Limiter limiter = Down();
  EXPECT_DOUBLE_EQ(limiter.Wait(4.5), 0.5);
  double now = 5;
  for (const double pause : {10.0, 20.0, 30.0, 30.0}) {
    ASSERT_EQ(limiter.Wait(now), 0);
    ASSERT_TRUE(limiter.OnSend());
    EXPECT_TRUE(std::isinf(limiter.Wait(now)));
    limiter.OnFailure(now, 0, 1, true);
    EXPECT_DOUBLE_EQ(limiter.Wait(now), pause);
    now += pause;
  }
  EXPECT_DOUBLE_EQ(limiter.OutageSeconds(), now - 30);
  limiter.OnSend();
  limiter.OnAlive();
  EXPECT_EQ(limiter.Wait(now), 0);
  EXPECT_FALSE(limiter.OnSend());
  EXPECT_EQ(limiter.OutageSeconds(), 0);
}

TEST(Limiter, TimeWithoutAnAttemptIsNoOutageButAnAttemptThatHangsIs) {
  Limiter limiter = Down();
  limiter.OnSend();
  limiter.OnFailure(7200, 0, 5, true);  // nobody asked for two hours
  EXPECT_DOUBLE_EQ(limiter.OutageSeconds(), 60);
  limiter.OnSend();
  limiter.OnFailure(7830, 600, 5, true);
  EXPECT_DOUBLE_EQ(limiter.OutageSeconds(), 690);
}

TEST(Limiter, TheLastProbeBeginsAtTheEndThatWasTold) {
  Limiter first(Options(12, 20));
  for (uint64_t request = 1; request <= 4; ++request) first.OnFailure(0, 0, request, false);
  for (Limiter limiter : {first, Down(20)}) {
    EXPECT_DOUBLE_EQ(limiter.SecondsLeft(), 20);
    EXPECT_DOUBLE_EQ(limiter.ProbeSeconds(5), 15);
    EXPECT_DOUBLE_EQ(limiter.ProbeSeconds(18), 5);  // but long enough to be of use
    double now = 0;
    for (const double pause : {5.0, 10.0, 5.0}) {  // the last would be 20
      EXPECT_DOUBLE_EQ(limiter.Wait(now), pause);
      now += pause;
      ASSERT_TRUE(limiter.OnSend());
      limiter.OnFailure(now, 0, 1, true);
    }
    EXPECT_DOUBLE_EQ(limiter.SecondsLeft(), 0);
  }
}

TEST(Backoff, IsUniformBelowABoundThatDoublesUpToTheCap) {
  const double bounds[] = {0.5, 1, 2, 4, 8, 16, 30, 30};
  for (uint32_t retry = 1; retry <= 8; ++retry) {
    const double bound = bounds[retry - 1];
    double sum = 0, least = bound, most = 0;
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
  EXPECT_EQ(BackoffSeconds(1, 10, 7, "x", 2), BackoffSeconds(1, 10, 7, "x", 2));
  std::set<double> different = {BackoffSeconds(1, 1, 7, "x", 1), BackoffSeconds(1, 1, 8, "x", 1),
                                BackoffSeconds(1, 1, 7, "y", 1), BackoffSeconds(1, 1, 7, "x", 2)};
  EXPECT_EQ(different.size(), 4U);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
