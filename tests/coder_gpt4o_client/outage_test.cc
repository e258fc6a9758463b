// A service that is down, for a while or for good: no request is lost.
#include "server.h"
#include "socket_server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

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
  EXPECT_EQ(requests, 60 + 16);
  const std::string told = notices.All();
  EXPECT_THAT(told, HasSubstr("the service fails: the service answered 500: down"));
  EXPECT_EQ(told.find("the service fails: "), told.rfind("the service fails: ")) << "one outage";
  EXPECT_THAT(told, HasSubstr("answers again"));
}

TEST(Outage, ThatDoesNotEndEndsTheRun) {
  const Server server(
      [&](const auto&, auto& response, int) { AnswerError(response, 500, ErrorBody("down for good")); });
  ClientOptions options = QuickOptions(server.Url());
  options.max_outage_seconds = 0.8;
  options.probe_pause_seconds = options.probe_pause_cap_seconds = 1e6;  // waited for, the test would not end
  const Notices notices(options);
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(16))) {
    EXPECT_EQ(completion.outcome, Outcome::kFatal);
    EXPECT_EQ(completion.failure, "outage");
    EXPECT_THAT(completion.message, HasSubstr("down for good"));
  }
  EXPECT_THAT(notices.All(), HasSubstr("down for good. Nothing is sent for 1 s, then one request at a time; unless one "
                                       "is answered, the run ends in 1 s"));
}

// Else a probe would wait for the longer of two pauses, and begin after the end that was told.
TEST(Outage, TooManyRequestsPauseNoLongerDuringOne) {
  const Server server([](const auto&, auto& response, int) { AnswerError(response, 429, ErrorBody("slow down")); });
  ClientOptions options = QuickOptions(server.Url());
  options.max_concurrency = options.outage_failures = 3;
  options.backoff_base_seconds = 0.1;
  options.backoff_cap_seconds = 1;
  options.max_outage_seconds = 0.8;
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(3))) EXPECT_EQ(completion.failure, "outage");
  EXPECT_GT(server.Count(), 3u + 4u);  // at pauses of a second there would be one probe
}

// A probe is not waited for beyond the end that was told, as a request is.
TEST(Outage, AServiceThatGoesSilentDuringOneEndsTheRunInTime) {
  std::promise<void> over;
  std::shared_future<void> is_over(over.get_future());
  std::atomic<int> requests = 0;
  const Server server([&](const auto&, auto& response, int) {
    if (++requests <= 8) return AnswerError(response, 500, ErrorBody("down"));
    is_over.wait();
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_concurrency = 1;  // what is under way at the end is waited for
  options.max_outage_seconds = 0.8;
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(8))) {
    EXPECT_EQ(completion.failure, "outage");
    EXPECT_THAT(completion.message, HasSubstr("no answer began within 1 s"));
  }
  over.set_value();
}

// Of an answer that is not streamed nothing is heard until it is whole: one that is on its way may take its time.
TEST(Outage, AnAnswerInOnePieceIsNotCutOffAtItsEnd) {
  std::atomic<int> requests = 0;
  const Server server([&](const auto& request, auto& response, int) {
    if (++requests <= 8) return AnswerError(response, 500, ErrorBody("down"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // a probe of a stream would wait for one second
    AnswerRight(request, response, "kernel");
  });
  ClientOptions options = QuickOptions(server.Url());
  options.stream = false;
  options.max_concurrency = 8;
  options.max_outage_seconds = 0.8;
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(8)))
    EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
}

// Every call must end the run, long before an outage would.
std::vector<Completion> AskWhereNoServiceEverWas(ClientOptions options) {
  options.max_first_outage_seconds = 0.1;
  options.max_outage_seconds = 1000;
  CompletionClient client(options);
  std::vector<Completion> completions = AskAll(client, Prompts(8));
  for (const Completion& completion : completions) EXPECT_EQ(completion.outcome, Outcome::kFatal);
  return completions;
}

TEST(Outage, AProxyThatDoesNotFindTheServiceIsNotTheService) {
  const SocketServer proxy(
      [](const Exchange& exchange, int) { exchange.Send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"); });
  const ClientOptions options = QuickOptions("https://service.invalid/v1");
  const Variable variable("https_proxy", "http://127.0.0.1:" + std::to_string(proxy.Port()));
  for (const Completion& completion : AskWhereNoServiceEverWas(options)) {
    EXPECT_THAT(completion.message, HasSubstr("502"));
    EXPECT_EQ(completion.lost.attempts, 0U);
  }
}

TEST(Outage, AWebPageIsNoServiceThatWasThere) {
  const Server server(
      [](const auto&, auto& response, int) { response.set_content("<html>Log in</html>", "text/html"); });
  const ClientOptions options = QuickOptions(server.Url());
  for (const Completion& completion : AskWhereNoServiceEverWas(options)) {
    EXPECT_THAT(completion.message, HasSubstr("no service of chat completions answered"));
    EXPECT_THAT(completion.message, HasSubstr("is not a JSON object but a web page"));
    EXPECT_THAT(completion.message, HasSubstr("Check base_url"));
  }
}

// However few they are, and however few attempts each may make.
TEST(Outage, OneRequestToNowhereEndsTheRun) {
  for (const uint32_t attempts : {1U, 3U, 8U}) {
    ClientOptions options = QuickOptions("http://127.0.0.1:" + std::to_string(ClosedPort()));
    options.max_first_outage_seconds = 0.1;
    options.max_attempts = attempts;
    std::vector<std::string> retries;
    options.retry_notice = [&](const std::string& message) { retries.push_back(message); };
    CompletionClient client(options);
    const Completion completion = Ask(client);
    EXPECT_EQ(completion.outcome, Outcome::kFatal);
    EXPECT_EQ(completion.failure, "outage");
    EXPECT_GT(completion.attempts, attempts);
    EXPECT_EQ(completion.http_status, 0);
    EXPECT_THAT(completion.message,
                HasSubstr("no service of chat completions answered at " + options.base_url + "/chat/completions"));
    EXPECT_THAT(completion.message, HasSubstr("most services want /v1 at its end: " + options.base_url + "/v1"));
    ASSERT_FALSE(retries.empty());  // a person who waits need not wait for the end
    EXPECT_THAT(retries.front(), HasSubstr("check base_url; it has no path"));
  }
}

TEST(Outage, ASlowStartIsWaitedFor) {
  const int port = ClosedPort();
  ClientOptions options = QuickOptions("http://127.0.0.1:" + std::to_string(port) + "/v1");
  options.max_attempts = 2;
  std::optional<Server> server;
  options.notice = [&](const std::string&) {  // by now both attempts have failed
    if (!server)
      server.emplace([](const auto& request, auto& response, int) { AnswerRight(request, response, "up"); }, port);
  };
  CompletionClient client(options);
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
  EXPECT_GT(completion.attempts, 2U);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
