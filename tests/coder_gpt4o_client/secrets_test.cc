// Secrets that must not appear in messages: the key, headers' values, a URL's query.
#include <unistd.h>

#include "server.h"
#include "socket_server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

// A server that sends back everything it got must not bring the key into what people read.
TEST(Secrets, StayHidden) {
  const Server server([](const auto& request, auto& response, int) {
    const std::string echo = request.get_header_value("Authorization") + " " + request.get_header_value("X-Team") +
                             " " + std::string(280, 'x') + request.get_header_value("Authorization");
    if (request.body.find("answer") != std::string::npos) {
      AnswerRight(request, response, echo);
    } else {
      AnswerError(response, request.body.find("fatal") != std::string::npos ? 401 : 500, ErrorBody(echo));
    }
  });
  for (const char* prompt : {"answer", "failed", "fatal"}) {
    ClientOptions options = QuickOptions(server.Url());
    options.headers = {{"X-Team", "team-secret-42"}};
    options.max_attempts = 1;
    const Notices notices(options);
    CompletionClient client(options);
    const Completion completion = Ask(client, prompt);
    for (const std::string& text : {completion.text, completion.message, notices.All()}) {
      EXPECT_THAT(text, Not(HasSubstr("sk-test"))) << prompt;
    }
    EXPECT_THAT(completion.message + notices.All(), Not(HasSubstr("team-secret"))) << prompt;
    EXPECT_THAT(completion.text + completion.message, HasSubstr("Bearer [hidden]"));
  }
}

TEST(Secrets, AUrlsQueryIsNotRepeated) {
  const SocketServer server([](const Exchange& exchange, int) {
    const std::string& request = exchange.Request();
    const std::string body = ErrorBody("Cannot " + request.substr(0, request.find(" HTTP/")), "");
    exchange.Send("HTTP/1.1 404 Not Found\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  });
  CompletionClient client(QuickOptions(server.Url() + "?api-version=2024-10-21&code=hunter22%2Bhunter22"));
  const std::string message = Ask(client).message;
  EXPECT_THAT(message, HasSubstr("Cannot POST /v1/chat/completions?api-version=2024-10-21&code=[hidden]"));

  ClientOptions options =
      QuickOptions("http://127.0.0.1:" + std::to_string(ClosedPort()) + "/v1?api-version=2024-10-21&code=hunter22");
  options.max_first_outage_seconds = 0;
  options.outage_failures = 3;
  CompletionClient nowhere(options);
  EXPECT_THAT(AskAll(nowhere, {"a", "b", "c", "d"}).back().message,
              testing::AllOf(HasSubstr("/v1/chat/completions for"), Not(HasSubstr("?"))));
}

TEST(Secrets, TheEnvironmentsProxyPasswordIsNotRepeated) {
  const SocketServer proxy([](const Exchange& exchange, int) {
    const std::string body = ErrorBody("no way for http://me:hunter22%2Bhunter22 nor hunter22+hunter22");
    exchange.Send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  });
  const std::string address = "me:hunter22%2Bhunter22@127.0.0.1:" + std::to_string(proxy.Port());
  for (const std::string& value : {address, "http://" + address}) {
    ClientOptions options = QuickOptions("http://service.invalid/v1");
    options.max_attempts = 1;
    const Variable variable("http_proxy", value);
    CompletionClient client(options);
    EXPECT_THAT(Ask(client).message, HasSubstr("no way for http://me:[hidden] nor [hidden]")) << value;
  }
}

// A token that expires: the command is run again when the service refuses it, and no call fails for it.
TEST(Secrets, AKeyThatExpiresIsRenewedByItsCommand) {
  const std::string file = testing::TempDir() + "/kgrpo_key_" + std::to_string(getpid());
  std::atomic<int> valid = 0;
  const auto write = [&](int number) { std::ofstream(file) << "  token-number-" << number << " \n"; };
  const Server server([&](const auto& request, auto& response, int) {
    if (request.get_header_value("Authorization") == "Bearer token-number-" + std::to_string(valid))
      return AnswerRight(request, response, request.get_header_value("Authorization"));
    AnswerError(response, 401, ErrorBody("expired: " + request.get_header_value("Authorization")));
  });
  ClientOptions options = QuickOptions(server.Url());
  options.api_key.clear();
  options.api_key_command = "cat " + file;
  options.max_attempts = 1;
  write(0);
  CompletionClient client(options);
  EXPECT_EQ(Ask(client, "first").text, "Bearer [hidden]");
  write(valid = 1);
  for (const Completion& completion : AskAll(client, {"a", "b", "c", "d"}))
    EXPECT_EQ(completion.text, "Bearer [hidden]") << completion.message;
  valid = 2;  // and the command does not know it
  const Completion refused = Ask(client, "last");
  EXPECT_EQ(refused.outcome, Completion::Outcome::kFatal);
  EXPECT_EQ(refused.failure, "unauthorized");
  EXPECT_THAT(refused.message, AllOf(HasSubstr("expired: Bearer [hidden]"), Not(HasSubstr("token-number"))));
  std::filesystem::remove(file);
}

TEST(Secrets, ACommandThatGivesNoKeyEndsTheRun) {
  for (const char* command : {"exit 3", "true", "/no/such/command 2>/dev/null"}) {
    ClientOptions options = QuickOptions("http://127.0.0.1:1/v1");
    options.api_key.clear();
    options.api_key_command = command;
    CompletionClient client(options);
    const Completion completion = Ask(client);
    EXPECT_EQ(completion.outcome, Completion::Outcome::kFatal);
    EXPECT_EQ(completion.failure, "unauthorized");
    EXPECT_THAT(completion.message, HasSubstr("api_key_command")) << command;
  }
}

TEST(Secrets, AFurtherSecretIsHiddenInAnswersToo) {
  const Server server([](const auto& request, auto& response, int) {
    AnswerRight(request, response, "of " + request.get_header_value("x-portkey-api-key"));
  });
  ClientOptions options = QuickOptions(server.Url());
  options.headers = {{"x-portkey-api-key", "portkey-0123456789"}};
  options.secrets = {"portkey-0123456789"};
  CompletionClient client(options);
  EXPECT_EQ(Ask(client).text, "of [hidden]");
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
