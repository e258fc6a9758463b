// Connections that break, stall or never speak HTTP.
#include "server.h"
#include "socket_server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

struct Breaking {
  const char* name;
  const char* failure;
  std::function<void(const Exchange&)> fail;
  bool stream = true;
};

std::string UnfinishedStream() {
  const std::string stream = StreamedAnswer("the whole answer");
  return stream.substr(0, stream.find("finish_reason\":\"stop"));
}

class BrokenConnections : public testing::TestWithParam<Breaking> {
 protected:
  static ClientOptions Options(const SocketServer& server) {
    ClientOptions options = QuickOptions(server.Url());
    options.stream = GetParam().stream;
    options.response_timeout_seconds = 0.2;
    options.idle_timeout_seconds = 0.2;
    options.total_timeout_seconds = 0.5;
    return options;
  }
};

TEST_P(BrokenConnections, AreNamedAndTriedAgainOnANewOne) {
  std::atomic<int> fails = 0;
  const SocketServer server([&](const Exchange& exchange, int) {
    if (fails == 0) return AnswerOnce(exchange);
    --fails;
    GetParam().fail(exchange);
  });
  ClientOptions options = Options(server);
  options.max_attempts = 3;
  CompletionClient client(options);
  ASSERT_EQ(Ask(client).outcome, Outcome::kAnswered);  // else it would be a wrong base_url
  fails = 1;
  EXPECT_EQ(Ask(client).outcome, Outcome::kAnswered);
  fails = 3;
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kFailed);
  EXPECT_EQ(completion.failure, GetParam().failure) << completion.message;
  EXPECT_EQ(completion.text, "");
  if (std::string(GetParam().name).ends_with("WithoutAWord")) {
    EXPECT_EQ(completion.lost.attempts, 0U);  // it bills nothing
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenConnections,
    testing::Values(Breaking{"ClosedWithoutAWord", "connection", [](const Exchange&) {}},
                    Breaking{"ResetWithoutAWord", "connection", [](const Exchange& exchange) { exchange.Reset(); }},
                    Breaking{"ResetInTheHeaders", "connection",
                             [](const Exchange& exchange) {
                               exchange.Send("HTTP/1.1 200 OK\r\nContent-Ty");
                               exchange.Reset();
                             }},
                    Breaking{"ResetInTheStream", "connection",
                             [](const Exchange& exchange) {
                               exchange.Send(ChunkedHead() + HttpChunk(UnfinishedStream()));
                               exchange.Reset();
                             }},
                    Breaking{
                        "ClosedInTheStream", "connection",
                        [](const Exchange& exchange) { exchange.Send(ChunkedHead() + HttpChunk(UnfinishedStream())); }},
                    Breaking{"EndedInTheStream", "invalid_answer",
                             [](const Exchange& exchange) {
                               exchange.Send(ChunkedHead() + HttpChunk(UnfinishedStream()) + HttpChunk(""));
                             }},
                    Breaking{"UnreadableInAStreamThatStaysOpen", "invalid_answer",
                             [](const Exchange& exchange) {
                               exchange.Send(ChunkedHead() + HttpChunk(UnfinishedStream() + "\n\ndata: {oops\n\n"));
                               exchange.HoldUntilClosed();
                             }},
                    Breaking{"ResetInAWholeAnswer", "connection",
                             [](const Exchange& exchange) {
                               const std::string answer = Http(WholeAnswer("the whole answer"));
                               exchange.Send(answer.substr(0, answer.size() - 40));
                               exchange.Reset();
                             },
                             false},
                    Breaking{"NoHttp", "invalid_answer",
                             [](const Exchange& exchange) { exchange.Send("220 mail.example ESMTP\r\n"); }},
                    Breaking{"Silent", "timeout", [](const Exchange& exchange) { exchange.HoldUntilClosed(); }},
                    Breaking{"SilentAfterTheHeaders", "timeout",
                             [](const Exchange& exchange) {
                               exchange.Send(ChunkedHead());
                               exchange.HoldUntilClosed();
                             }},
                    Breaking{"StalledInTheStream", "timeout",
                             [](const Exchange& exchange) {
                               exchange.Send(ChunkedHead() + HttpChunk(UnfinishedStream()));
                               exchange.HoldUntilClosed();
                             }},
                    Breaking{"SilentWithoutAStream", "timeout",
                             [](const Exchange& exchange) { exchange.HoldUntilClosed(); }, false},
                    // Slow loris: something always comes, the answer never. Only the total time-out helps.
                    Breaking{"TricklingHeaders", "timeout",
                             [](const Exchange& exchange) {
                               exchange.Send("HTTP/1.1 200 OK\r\n");
                               while (exchange.Trickle("X-Header: x\r\n")) {
                               }
                             },
                             false},
                    Breaking{"TricklingComments", "timeout",
                             [](const Exchange& exchange) {
                               exchange.Send(ChunkedHead());
                               while (exchange.Trickle(HttpChunk(": working\n\n"))) {
                               }
                             }}),
    [](const auto& info) { return std::string(info.param.name); });

// The answer is there, whole: that the connection is treated badly after it must not cost a second one.
TEST(Broken, WhatHappensAfterTheLastWordIsNoMatter) {
  const std::string whole = StreamedAnswer("right");
  const std::string without_done = whole.substr(0, whole.find("data: [DONE]"));
  const std::function<void(const Exchange&)> ends[] = {
      [&](const Exchange& exchange) {
        exchange.Send(ChunkedHead() + HttpChunk(whole));
        exchange.HoldUntilClosed();
      },
      [&](const Exchange& exchange) { exchange.Send(ChunkedHead() + HttpChunk(whole)); },
      [&](const Exchange& exchange) { exchange.Send(ChunkedHead() + HttpChunk(without_done)); },
      [&](const Exchange& exchange) { exchange.Send("HTTP/1.1 200 OK\r\n\r\n" + whole); },
      [&](const Exchange& exchange) {
        exchange.Send(ChunkedHead() + HttpChunk(without_done) + HttpChunk("data: {\"error\":{\"code\":500}}\n\n") +
                      HttpChunk(""));
      },
  };
  for (const auto& end : ends) {
    const SocketServer server([&](const Exchange& exchange, int) { end(exchange); });
    CompletionClient client(QuickOptions(server.Url()));
    const Completion completion = Ask(client);
    EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
    EXPECT_EQ(completion.text, "right");
    EXPECT_EQ(completion.attempts, 1U);
  }
}

TEST(Broken, PingsAfterTheLastWordAreNotWaitedFor) {
  std::atomic<bool> all_sent = false;
  const SocketServer server([&](const Exchange& exchange, int) {
    exchange.Send(ChunkedHead() + HttpChunk(StreamedAnswer("right")));
    for (int ping = 0; ping < 300; ++ping) {  // of 15 bytes, each 20 ms after the last at least: 90 s in all
      if (!exchange.Trickle(HttpChunk(": ping\n\n"))) return;
    }
    all_sent = true;
  });
  ClientOptions options = QuickOptions(server.Url());
  options.total_timeout_seconds = 600;
  CompletionClient client(options);
  EXPECT_EQ(Ask(client).text, "right");
  EXPECT_FALSE(all_sent);
}

// A stream may take longer than the idle time-out in all, as long as something comes.
TEST(Broken, ASlowStreamIsReadToItsEnd) {
  const SocketServer slow([](const Exchange& exchange, int) {
    exchange.Send(ChunkedHead());
    for (int i = 0; i < 60; ++i) {
      exchange.Trickle("3");
      exchange.Send("\r\n:w\n\r\n");
    }
    exchange.Send(HttpChunk(StreamedAnswer("right")) + HttpChunk(""));
  });
  ClientOptions options = QuickOptions(slow.Url());
  options.idle_timeout_seconds = 1;  // 60 pieces, each 20 ms after the last at least: 1.2 s in all
  CompletionClient client(options);
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.text, "right") << completion.message;
  EXPECT_EQ(completion.attempts, 1U);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
