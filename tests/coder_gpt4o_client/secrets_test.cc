// Secrets that must not appear in messages: the key, headers' values, a URL's query.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server.h"
#include "socket_server.h"

namespace kgrpo::coder_gpt4o {
namespace {

using testing::HasSubstr;
using testing::Not;

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
  CompletionClient client(QuickOptions(server.Url() + "?api-version=2024-10-21&sig=hunter22%2Bhunter22"));
  const std::string message = Ask(client).message;
  EXPECT_THAT(message, HasSubstr("Cannot POST /v1/chat/completions?api-version=2024-10-21&sig=[hidden]"));

  ClientOptions options =
      QuickOptions("http://127.0.0.1:" + std::to_string(ClosedPort()) + "/v1?api-version=2024-10-21&sig=hunter22");
  options.max_first_outage_seconds = 0;
  options.breaker_failures = 3;
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
    options.proxy.reset();
    options.max_attempts = 1;
    setenv("http_proxy", value.c_str(), 1);
    CompletionClient client(options);
    EXPECT_THAT(Ask(client).message, HasSubstr("no way for http://me:[hidden] nor [hidden]")) << value;
    unsetenv("http_proxy");
  }
}

// A header's value may be a word that a kernel uses: the answer is code and stays as it is.
TEST(Secrets, AHeadersValueIsNotCutOutOfAKernel) {
  const std::string kernel = "__global__ void team_softmax() {}";
  const Server server([&](const auto& request, auto& response, int) { AnswerRight(request, response, kernel); });
  ClientOptions options = QuickOptions(server.Url());
  options.headers = {{"OpenAI-Project", "team_softmax"}};
  CompletionClient client(options);
  EXPECT_EQ(Ask(client).text, kernel);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
