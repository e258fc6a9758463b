// Valid answers in all their shapes, and the requests for them.
#include "server.h"
#include "socket_server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

// Every length of UTF-8 character, and what JSON escapes.
constexpr char kText[] = "__global__ void f() { /* \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \" \\ \x01 */ }\n";

TEST(Answers, TenMegabytesAreRead) {
  std::string text;
  while (text.size() < 10000000) text += kText;
  const Server server([&](const auto& request, auto& response, int) { AnswerRight(request, response, text); });
  ClientOptions options = QuickOptions(server.Url());
  for (const bool stream : {true, false}) {
    options.stream = stream;
    CompletionClient client(options);
    const Completion completion = Ask(client);
    EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
    EXPECT_TRUE(completion.text == text) << completion.text.size();
  }
}

TEST(Answers, ALongerOneThanAllowedIsGivenUp) {
  const Server server(
      [](const auto& request, auto& response, int) { AnswerRight(request, response, std::string(300000, 'x')); });
  ClientOptions options = QuickOptions(server.Url());
  options.max_answer_bytes = 100000;
  for (const bool stream : {true, false}) {
    options.stream = stream;
    CompletionClient client(options);
    const Completion completion = Ask(client);
    EXPECT_EQ(completion.outcome, Outcome::kFailed);
    EXPECT_EQ(completion.failure, "too_long");
    EXPECT_EQ(completion.attempts, 1U);  // the next would be as long, and as dear
    EXPECT_THAT(completion.message, HasSubstr("100000 bytes"));
  }
}

TEST(Requests, CarryTheKeyTheHeadersAndTheBodyWithItsStream) {
  const Server server([](const auto& request, auto& response, int) { AnswerRight(request, response, "x"); });
  ClientOptions options = QuickOptions(server.Url() + "/");  // a slash too many is none
  options.headers = {{"OpenAI-Organization", "org-1"}, {"OpenAI-Project", "proj_1"}};
  CompletionClient client(options);
  ASSERT_EQ(Ask(client, "caf\xC3\xA9 \"}").outcome, Outcome::kAnswered);
  const httplib::Request request = server.Requests().at(0);
  EXPECT_EQ(request.get_header_value("Authorization"), "Bearer sk-test-0123456789");
  EXPECT_EQ(request.get_header_value("OpenAI-Organization"), "org-1");
  EXPECT_EQ(request.get_header_value("OpenAI-Project"), "proj_1");
  EXPECT_EQ(request.get_header_value("Content-Type"), "application/json");
  const json body = json::parse(request.body);
  EXPECT_EQ(body.at("messages")[0].at("content"), "caf\xC3\xA9 \"}");
  EXPECT_EQ(body.at("stream"), true);
  EXPECT_EQ(body.at("stream_options").at("include_usage"), true);
}

TEST(Requests, AzuresUrlAndHeaderAreAsItWantsThem) {
  std::string seen;
  const SocketServer server([&](const Exchange& exchange, int) {
    seen = exchange.Request();
    exchange.Send(Http(WholeAnswer("x")));
  });
  ClientOptions options =
      QuickOptions("http://127.0.0.1:" + std::to_string(server.Port()) + "/openai/deployments/d?api-version=1");
  options.api_key_header = "api-key";
  options.headers = {{"X-Empty", ""}};
  {
    CompletionClient client(options);
    EXPECT_EQ(Ask(client).text, "x");
  }
  EXPECT_THAT(seen, HasSubstr("POST /openai/deployments/d/chat/completions?api-version=1 HTTP/1.1\r\n"));
  EXPECT_THAT(seen, HasSubstr("X-Empty:\r\n"));
  EXPECT_THAT(seen, HasSubstr("api-key: sk-test-0123456789\r\n"));
  EXPECT_THAT(seen, Not(HasSubstr("Authorization")));
}

TEST(Requests, GoThroughTheEnvironmentsProxyButForThisMachine) {
  std::string seen;
  const SocketServer proxy([&](const Exchange& exchange, int) {
    seen = exchange.Request();
    exchange.Send(Http(WholeAnswer("by proxy")));
  });
  const Server server([](const auto& request, auto& response, int) { AnswerRight(request, response, "straight"); });
  for (const std::string host : {"service.invalid", "127.0.0.1", "localhost"}) {
    const ClientOptions options = QuickOptions("http://" + host + ":" + std::to_string(server.Port()) + "/v1");
    const Variable variable("http_proxy", "http://127.0.0.1:" + std::to_string(proxy.Port()));
    CompletionClient client(options);
    // The key would stand in plain text in what a proxy gets.
    EXPECT_EQ(Ask(client).text, host == "service.invalid" ? "by proxy" : "straight") << host;
  }
  EXPECT_THAT(seen, HasSubstr("POST http://service.invalid:"));
  EXPECT_EQ(proxy.Count(), 1);
}

// Some servers know "stream" but not "stream_options", and say so with 400 or, as FastAPI, with 422.
class TokenCounts : public testing::TestWithParam<int> {};

TEST_P(TokenCounts, AreDoneWithoutWhereTheServerWantsThat) {
  const Server server([status = GetParam()](const auto& request, auto& response, int) {
    if (json::parse(request.body).contains("stream_options")) {
      AnswerError(response, status, ErrorBody("Unknown parameter: 'stream_options'.", "unknown_parameter"));
    } else {
      AnswerRight(request, response, "x");
    }
  });
  ClientOptions options = QuickOptions(server.Url());
  const Notices notices(options);
  CompletionClient client(options);
  // A call that waits for the budget until this one has its outcome must not hold it up.
  std::promise<Completion> done;
  int in_flight = 0;
  CompletionRequest first = Prompt("first");
  first.may_send = [&](const Losses&) { return ++in_flight, Leave::kSend; };
  first.waits = [&](const Losses&) { --in_flight; };
  client.Send(std::move(first), [&](Completion completion) { done.set_value(std::move(completion)); });
  EXPECT_EQ(done.get_future().get().outcome, Outcome::kAnswered);
  EXPECT_EQ(in_flight, 1);
  for (const Completion& completion : AskAll(client, {"a", "b", "c", "d"})) {
    EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
  }
  const size_t sent = server.Count();
  EXPECT_EQ(Ask(client, "e").attempts, 1U);  // it has learnt
  EXPECT_EQ(server.Count(), sent + 1);
  EXPECT_THAT(notices.All(), HasSubstr("stream_options"));
}

INSTANTIATE_TEST_SUITE_P(Statuses, TokenCounts, testing::Values(400, 422));

}  // namespace
}  // namespace kgrpo::coder_gpt4o
