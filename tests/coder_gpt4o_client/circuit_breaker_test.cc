// The circuit breaker, by a clock that the test sets.
#include "coder_gpt4o/client/circuit_breaker.h"

#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

constexpr BreakerOptions kOptions = {4, 2, 5, 30};

// Of a service that was there once.
CircuitBreaker Contacted() {
  CircuitBreaker breaker(kOptions);
  breaker.OnContact();
  return breaker;
}

CircuitBreaker Opened(double now) {
  CircuitBreaker breaker = Contacted();
  for (uint64_t request = 1; request <= 4; ++request) breaker.OnFailure(now, 0, request, false);
  return breaker;
}

TEST(CircuitBreaker, OpensAfterFailuresOfSeveralRequestsInARow) {
  CircuitBreaker breaker = Contacted();
  for (uint64_t request = 1; request <= 3; ++request) breaker.OnFailure(0, 0, request, false);
  EXPECT_FALSE(breaker.Open());
  breaker.OnFailure(2, 0, 1, false);
  EXPECT_TRUE(breaker.Open());
  EXPECT_DOUBLE_EQ(breaker.Wait(2), 5);
  EXPECT_DOUBLE_EQ(breaker.OutageSeconds(), 2);  // since the first of them
}

TEST(CircuitBreaker, OneOrTwoBadPromptsAreNoOutage) {
  CircuitBreaker breaker = Contacted();
  for (int i = 0; i < 100; ++i) breaker.OnFailure(i, 0, 1 + i % 2, false);
  EXPECT_FALSE(breaker.Open());
}

TEST(CircuitBreaker, WhereNothingEverWasOneRequestIsEnough) {
  CircuitBreaker breaker(kOptions);
  breaker.OnFailure(0, 0, 1, false);
  EXPECT_FALSE(breaker.Open());
  breaker.OnFailure(1, 0, 1, false);
  EXPECT_TRUE(breaker.Open());
  EXPECT_DOUBLE_EQ(breaker.Wait(1), 5);
}

TEST(CircuitBreaker, LetsOneProbeOutAtATimeAndDoublesThePause) {
  CircuitBreaker breaker = Opened(0);
  EXPECT_DOUBLE_EQ(breaker.Wait(4.5), 0.5);
  double now = 5;
  for (const double pause : {10.0, 20.0, 30.0, 30.0}) {
    ASSERT_EQ(breaker.Wait(now), 0);
    ASSERT_TRUE(breaker.OnSend());
    EXPECT_TRUE(std::isinf(breaker.Wait(now)));
    breaker.OnFailure(now, 0, 1, true);
    EXPECT_DOUBLE_EQ(breaker.Wait(now), pause);
    now += pause;
  }
  EXPECT_DOUBLE_EQ(breaker.OutageSeconds(), now - 30);
}

TEST(CircuitBreaker, AnAnswerClosesAndTheNextOutageStartsAfresh) {
  CircuitBreaker breaker = Opened(0);
  breaker.OnSend();
  breaker.OnFailure(5, 0, 1, true);
  breaker.OnSend();
  breaker.OnAlive();
  EXPECT_FALSE(breaker.Open());
  EXPECT_EQ(breaker.Wait(6), 0);
  EXPECT_FALSE(breaker.OnSend());
  EXPECT_EQ(breaker.OutageSeconds(), 0);
  for (uint64_t request = 1; request <= 4; ++request) breaker.OnFailure(100, 0, request, false);
  EXPECT_DOUBLE_EQ(breaker.Wait(100), 5);
}

TEST(CircuitBreaker, TimeWithoutAnAttemptIsNoOutage) {
  CircuitBreaker breaker = Opened(0);
  EXPECT_EQ(breaker.OutageSeconds(), 0);
  breaker.OnSend();
  breaker.OnFailure(7200, 0, 5, true);  // nobody asked for two hours
  EXPECT_DOUBLE_EQ(breaker.OutageSeconds(), 60);
}

TEST(CircuitBreaker, AnAttemptThatHangsIsPartOfTheOutage) {
  CircuitBreaker breaker = Opened(0);
  double now = 5;
  for (int probe = 0; probe < 4; ++probe) {
    breaker.OnSend();
    now += 600;
    breaker.OnFailure(now, 600, 1, true);
    now += 30;
  }
  EXPECT_DOUBLE_EQ(breaker.OutageSeconds(), now - 30);
}

TEST(CircuitBreaker, TheLastProbeBeginsAtTheEndThatWasTold) {
  for (const bool contacted : {true, false}) {
    CircuitBreaker breaker({4, 2, 5, 30, contacted ? 20.0 : 12.0, contacted ? 12.0 : 20.0});
    if (contacted) breaker.OnContact();
    for (uint64_t request = 1; request <= 4; ++request) breaker.OnFailure(0, 0, request, false);
    EXPECT_DOUBLE_EQ(breaker.SecondsLeft(), 20);
    double now = 0;
    for (const double pause : {5.0, 10.0, 5.0}) {  // the last would be 20
      EXPECT_DOUBLE_EQ(breaker.Wait(now), pause);
      now += pause;
      ASSERT_TRUE(breaker.OnSend());
      breaker.OnFailure(now, 0, 1, true);
    }
    EXPECT_DOUBLE_EQ(breaker.SecondsLeft(), 0);
  }
}

TEST(CircuitBreaker, AProbeWaitsNoLongerThanIsLeft) {
  CircuitBreaker breaker({4, 2, 5, 30, 20, 20});
  for (uint64_t request = 1; request <= 4; ++request) breaker.OnFailure(0, 0, request, false);
  EXPECT_DOUBLE_EQ(breaker.ProbeSeconds(5), 15);
  EXPECT_DOUBLE_EQ(breaker.ProbeSeconds(18), 5);    // but long enough to be of use
  EXPECT_DOUBLE_EQ(breaker.ProbeSeconds(7200), 5);  // nobody asked for two hours
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
