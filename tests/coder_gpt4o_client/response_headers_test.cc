// Values read from an answer's headers.
#include "coder_gpt4o/client/response_headers.h"

#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

ResponseHeaders Read(std::initializer_list<const char*> lines) {
  ResponseHeaders headers;
  for (const char* line : lines) headers.Take(line, /*unix_now=*/1445412470);
  return headers;
}

TEST(Duration, ReadsWhatServicesWrite) {
  EXPECT_DOUBLE_EQ(*ParseDuration("20ms"), 0.02);
  EXPECT_DOUBLE_EQ(*ParseDuration("1s"), 1);
  EXPECT_DOUBLE_EQ(*ParseDuration("8.64s"), 8.64);
  EXPECT_DOUBLE_EQ(*ParseDuration("6m0s"), 360);
  EXPECT_DOUBLE_EQ(*ParseDuration("1h2m3.5s"), 3723.5);
  EXPECT_DOUBLE_EQ(*ParseDuration("1d"), 86400);
  EXPECT_DOUBLE_EQ(*ParseDuration(" 7 "), 7);
}

TEST(ResponseHeaders, TheLastAnswerCounts) {
  const ResponseHeaders headers =
      Read({"HTTP/1.1 200 Connection established\r\n", "retry-after: 5\r\n", "\r\n", "HTTP/1.1 503 Busy\r\n", "\r\n"});
  EXPECT_EQ(headers.status, 503);
  EXPECT_FALSE(headers.retry_after.has_value());
}

TEST(ResponseHeaders, ReadsRetryAfterInItsThreeForms) {
  EXPECT_DOUBLE_EQ(*Read({"Retry-After: 20\r\n"}).retry_after, 20);
  EXPECT_DOUBLE_EQ(*Read({"Retry-After: Wed, 21 Oct 2015 07:28:20 GMT\r\n"}).retry_after, 30);
  EXPECT_DOUBLE_EQ(*Read({"Retry-After: Wed, 21 Oct 2015 07:00:00 GMT\r\n"}).retry_after, 0);
  EXPECT_DOUBLE_EQ(*Read({"Retry-After: 20\r\n", "retry-after-ms: 1500\r\n"}).retry_after, 1.5);
  EXPECT_DOUBLE_EQ(*Read({"retry-after-ms: 1500\r\n", "Retry-After: 20\r\n"}).retry_after, 1.5);
  EXPECT_FALSE(Read({"Retry-After: soon\r\n"}).retry_after.has_value());
  EXPECT_FALSE(Read({"Retry-After: -3\r\n"}).retry_after.has_value());
}

TEST(ResponseHeaders, ReadsRateLimits) {
  const ResponseHeaders headers =
      Read({"x-ratelimit-limit-requests: 500\r\n", "X-RateLimit-Remaining-Requests: 499\r\n",
            "x-ratelimit-reset-requests: 120ms\r\n", "x-ratelimit-limit-tokens: 30000\r\n",
            "x-ratelimit-remaining-tokens: many\r\n", "x-should-retry: false\r\n"});
  EXPECT_DOUBLE_EQ(*headers.requests.limit, 500);
  EXPECT_DOUBLE_EQ(*headers.requests.remaining, 499);
  EXPECT_DOUBLE_EQ(*headers.requests.reset, 0.12);
  EXPECT_DOUBLE_EQ(*headers.tokens.limit, 30000);
  EXPECT_FALSE(headers.tokens.remaining.has_value());
  EXPECT_EQ(headers.should_retry, false);
}

TEST(ResponseHeaders, ReadsATimeOfResetInItsForms) {
  for (const char* time : {"30", "30s", "1445412500", "1445412500000", "Wed, 21 Oct 2015 07:28:20 GMT"})
    EXPECT_DOUBLE_EQ(SecondsUntil(time, 1445412470).value_or(-1), 30) << time;
  EXPECT_DOUBLE_EQ(SecondsUntil("1445412400", 1445412470).value_or(-1), 0);
  EXPECT_DOUBLE_EQ(SecondsUntil(std::string(40, '9'), 0).value_or(-1), 1e40);
  for (const char* time : {"", "soon"}) EXPECT_FALSE(SecondsUntil(time, 0)) << time;
  const ResponseHeaders openrouter = Read({"X-RateLimit-Limit: 20\r\n", "X-RateLimit-Remaining: 0\r\n",
                                           "X-RateLimit-Reset: 1445412500000\r\n", "x-ratelimit-reset-tokens: 1m\r\n"});
  EXPECT_DOUBLE_EQ(*openrouter.requests.limit, 20);
  EXPECT_DOUBLE_EQ(*openrouter.requests.reset, 30);
  EXPECT_DOUBLE_EQ(*openrouter.tokens.reset, 60);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
