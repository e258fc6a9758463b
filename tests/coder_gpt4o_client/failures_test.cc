// Error responses over HTTP: those that are retried, those that are given up, and those that end the run.
#include "server.h"

#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

TEST(Failures, AServiceThatRefusesEverythingEndsTheRun) {
  const Server server(
      [](const auto&, auto& response, int) { AnswerError(response, 422, ErrorBody("extra_forbidden")); });
  CompletionClient client(QuickOptions(server.Url()));
  int fatal = 0;
  for (int i = 0; i < 20; ++i) {
    const Completion completion = Ask(client, std::to_string(i));
    fatal += completion.outcome == Outcome::kFatal ? 1 : 0;
    EXPECT_EQ(completion.message.find("refused 16 requests in a row") != std::string::npos, i >= 16);
  }
  EXPECT_EQ(fatal, 4);
  EXPECT_EQ(server.Count(), 16U);
}

TEST(Failures, ABadKeyEndsTheRunAtOnceAndForAll) {
  const Server server([](const auto&, auto& response, int) {
    AnswerError(response, 401, ErrorBody("Incorrect API key provided", "invalid_api_key"));
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_concurrency = 1;
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, {"a", "b", "c"})) {
    EXPECT_EQ(completion.outcome, Outcome::kFatal);
    EXPECT_EQ(completion.failure, "unauthorized");
    EXPECT_THAT(completion.message, HasSubstr("api_key_env"));
  }
  EXPECT_EQ(Ask(client).outcome, Outcome::kFatal);
  EXPECT_EQ(server.Count(), 1U);  // the others were not sent
}

// Moderation and firewalls answer 403 to a prompt.
TEST(Failures, AForbiddenPromptIsGivenUpOnceTheKeyIsKnownToBeGood) {
  const Server server([](const auto& request, auto& response, int) {
    if (request.body.find("bad") != std::string::npos) {
      AnswerError(response, 403, ErrorBody("flagged"));
    } else {
      AnswerRight(request, response, "right");
    }
  });
  CompletionClient client(QuickOptions(server.Url()));
  ASSERT_EQ(Ask(client, "good").outcome, Outcome::kAnswered);
  const Completion refused = Ask(client, "bad");
  EXPECT_EQ(refused.outcome, Outcome::kFailed);
  EXPECT_EQ(refused.failure, "rejected");
  EXPECT_EQ(refused.attempts, 1U);
  EXPECT_EQ(Ask(client, "good again").outcome, Outcome::kAnswered);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(Ask(client, "bad " + std::to_string(i)).outcome, Outcome::kFailed);
  EXPECT_EQ(Ask(client, "good at last").outcome, Outcome::kFatal);  // a key that was withdrawn

  CompletionClient fresh(QuickOptions(server.Url()));
  EXPECT_EQ(Ask(fresh, "bad").outcome, Outcome::kFatal);
}

TEST(Failures, ARedirectionIsNotFollowed) {
  const Server elsewhere([](const auto& request, auto& response, int) { AnswerRight(request, response, "stolen"); });
  const Server server([&](const auto&, auto& response, int) {
    response.status = 307;
    response.set_header("Location", elsewhere.Url() + "/chat/completions");
  });
  CompletionClient client(QuickOptions(server.Url()));
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kFatal);
  EXPECT_THAT(completion.message, HasSubstr(elsewhere.Url()));
  EXPECT_EQ(elsewhere.Count(), 0U);
}

TEST(Failures, AWaitLongerThanAnOutageMayLastEndsTheRun) {
  const Server server([](const auto&, auto& response, int) {
    AnswerError(response, 429, ErrorBody("come back tomorrow"));
    response.set_header("Retry-After", "86400");
  });
  CompletionClient client(QuickOptions(server.Url()));
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kFatal);
  EXPECT_THAT(completion.message, HasSubstr("a pause of 86400 s"));
}

TEST(Failures, AWaitOfOneRequestLongerThanAnOutageMayLastFailsIt) {
  const Server server([](const auto& request, auto& response, int) {
    if (request.body.find("bad") == std::string::npos) return AnswerRight(request, response, "right");
    AnswerError(response, 500, ErrorBody("come back tomorrow"));
    response.set_header("Retry-After", "86400");
  });
  CompletionClient client(QuickOptions(server.Url()));
  std::promise<Completion> done;
  client.Send(Prompt("bad"), [&](Completion bad) { done.set_value(std::move(bad)); });
  std::future<Completion> future = done.get_future();
  if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready) client.Cancel();  // it waits for tomorrow
  const Completion completion = future.get();
  EXPECT_EQ(completion.outcome, Outcome::kFailed);
  EXPECT_EQ(completion.failure, "server_error");
  EXPECT_EQ(completion.attempts, 1U);
  EXPECT_THAT(completion.message, HasSubstr("86400 s"));
  EXPECT_THAT(completion.message, HasSubstr("come back tomorrow"));
  EXPECT_EQ(Ask(client, "good").outcome, Outcome::kAnswered);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
