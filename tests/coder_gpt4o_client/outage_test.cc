// A service that is down, for a while or for good: nothing is lost meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "server.h"
#include "socket_server.h"

namespace kgrpo::coder_gpt4o {
namespace {

using testing::HasSubstr;
using Outcome = Completion::Outcome;

std::vector<std::string> Prompts(int count) {
  std::vector<std::string> prompts;
  for (int i = 0; i < count; ++i) prompts.push_back("prompt " + std::to_string(i));
  return prompts;
}

TEST(Outage, WaitsInsteadOfFailingWhatIsInFlight) {
  std::atomic<int> requests = 0;
  const Server server([&](const auto& request, auto& response, int) {
    if (++requests <= 60) {
      AnswerError(response, 500, ErrorBody("down"));
    } else {
      AnswerRight(request, response, "right");
    }
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_attempts = 3;  // 16 requests of 3 attempts would all fail within 48
  options.max_concurrency = 16;
  const Notices notices(options);
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(16))) {
    EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
  }
  EXPECT_EQ(client.Statistics().breaker_openings, 1U);
  EXPECT_EQ(requests, 60 + 16);
  EXPECT_THAT(notices.All(), HasSubstr("the service fails: the service answered 500: down"));
  EXPECT_THAT(notices.All(), HasSubstr("answers again"));
}

TEST(Outage, OnlyProbesAreSentDuringOne) {
  std::atomic<bool> down = true;
  std::atomic<int> requests = 0;
  const Server server([&](const auto& request, auto& response, int) {
    // 32 are in flight when it goes down; after them one at a time, which MostAtOnce cannot tell: the pauses can.
    if (++requests > 32 + 5) down = false;
    if (down) {
      AnswerError(response, 502, "");
    } else {
      AnswerRight(request, response, "right");
    }
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_concurrency = 32;
  options.backoff_base_seconds = 0;  // nothing but the breaker holds them
  CompletionClient client(options);
  const auto completions = AskAll(client, Prompts(32));
  uint32_t attempts = 0;
  for (const Completion& completion : completions) {
    EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
    attempts += completion.attempts;
  }
  EXPECT_EQ(attempts, static_cast<uint32_t>(requests));
}

TEST(Outage, ThatDoesNotEndEndsTheRun) {
  const Server server(
      [&](const auto&, auto& response, int) { AnswerError(response, 500, ErrorBody("down for good")); });
  ClientOptions options = QuickOptions(server.Url());
  options.max_outage_seconds = 0.1;
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(16))) {
    EXPECT_EQ(completion.outcome, Outcome::kFatal);
    EXPECT_EQ(completion.failure, "outage");
    EXPECT_THAT(completion.message, HasSubstr("down for good"));
  }
}

TEST(Outage, AServiceThatNeverWasThereIsAWrongUrl) {
  ClientOptions options = QuickOptions("http://127.0.0.1:" + std::to_string(ClosedPort()) + "/v1");
  options.max_first_outage_seconds = 0.1;
  options.max_outage_seconds = 1000;
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(8))) {
    EXPECT_EQ(completion.outcome, Outcome::kFatal);
    EXPECT_THAT(completion.message, HasSubstr("Check base_url"));
  }
}

TEST(Outage, AProxyThatDoesNotFindTheServiceIsNotTheService) {
  const SocketServer proxy(
      [](const Exchange& exchange, int) { exchange.Send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"); });
  ClientOptions options = QuickOptions("https://service.invalid/v1");
  options.proxy = "http://127.0.0.1:" + std::to_string(proxy.Port());
  options.max_first_outage_seconds = 0.1;
  options.max_outage_seconds = 1000;
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(8))) {
    EXPECT_EQ(completion.outcome, Outcome::kFatal);
    EXPECT_THAT(completion.message, HasSubstr("no service of chat completions answered"));
    EXPECT_THAT(completion.message, HasSubstr("502"));
    EXPECT_EQ(completion.lost_attempts, 0U);
  }
}

TEST(Outage, AWebPageIsNoServiceThatWasThere) {
  const Server server(
      [](const auto&, auto& response, int) { response.set_content("<html>Log in</html>", "text/html"); });
  ClientOptions options = QuickOptions(server.Url());
  options.max_first_outage_seconds = 0.1;
  options.max_outage_seconds = 1000;
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(8))) {
    EXPECT_EQ(completion.outcome, Outcome::kFatal);
    EXPECT_THAT(completion.message, HasSubstr("no service of chat completions answered"));
    EXPECT_THAT(completion.message, HasSubstr("is not a JSON object"));
    EXPECT_THAT(completion.message, HasSubstr("Check base_url"));
  }
}

TEST(Outage, OneRequestToNowhereFailsAfterItsAttempts) {
  CompletionClient client(QuickOptions("http://127.0.0.1:" + std::to_string(ClosedPort()) + "/v1"));
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kFailed);
  EXPECT_EQ(completion.failure, "connection");
  EXPECT_EQ(completion.attempts, 8U);
  EXPECT_EQ(completion.http_status, 0);
}

TEST(Outage, AnUnknownNameFailsAsOne) {
  CompletionClient client(QuickOptions("http://service.invalid/v1"));
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kFailed);
  EXPECT_THAT(completion.message, HasSubstr("service.invalid"));
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
