// Attempts that the service accepted but that gave no answer: it may bill them, so they are counted.
#include "server.h"
#include "socket_server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

constexpr char kHalf[] = "half of an answer";

std::string HalfAStream() {
  const std::string stream = StreamedAnswer(kHalf);
  return stream.substr(0, stream.find("data: {\"choices\":[{\"delta\":{},"));
}

ClientOptions Impatient(const std::string& url) {
  ClientOptions options = QuickOptions(url);
  options.response_timeout_seconds = 0.3;
  options.idle_timeout_seconds = 0.3;
  options.total_timeout_seconds = 1;
  return options;
}

TEST(Lost, StreamsThatBreakOffCountWithWhatTheyBrought) {
  const SocketServer server([](const Exchange& exchange, int number) {
    if (number == 1) {
      exchange.Send(ChunkedHead() + HttpChunk(HalfAStream()));
    } else if (number == 2) {
      exchange.Send(ChunkedHead() + HttpChunk(HalfAStream()) + HttpChunk(""));
    } else if (number == 3) {
      exchange.Send(ChunkedHead() + HttpChunk(HalfAStream()) +
                    HttpChunk("data: {\"error\":{\"message\":\"overloaded\"}}\n\n") + HttpChunk(""));
    } else {
      exchange.Send(Http(WholeAnswer("right")));
    }
  });
  CompletionClient client(QuickOptions(server.Url()));
  const Completion completion = Ask(client);
  ASSERT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
  EXPECT_EQ(completion.attempts, 4U);
  EXPECT_EQ(completion.lost.attempts, 3U);
  EXPECT_EQ(completion.lost.silent, 0U);
  EXPECT_EQ(completion.lost.bytes, 3 * std::string(kHalf).size());
}

TEST(Lost, SilenceCountsOnceTheRequestIsSent) {
  std::atomic<bool> was_there = false;  // else it would be a wrong base_url
  std::atomic<int> silent = 0;
  const SocketServer server([&](const Exchange& exchange, int) {
    if (!was_there) return AnswerOnce(exchange);
    if (++silent == 1) {
      exchange.HoldUntilClosed();
    } else {
      exchange.Send(ChunkedHead());
      exchange.HoldUntilClosed();
    }
  });
  ClientOptions options = Impatient(server.Url());
  options.max_attempts = 2;
  CompletionClient client(options);
  ASSERT_EQ(Ask(client).outcome, Outcome::kAnswered);
  was_there = true;
  const Completion completion = Ask(client);
  EXPECT_EQ(completion.outcome, Outcome::kFailed);
  EXPECT_EQ(completion.attempts, 2U);
  EXPECT_EQ(completion.lost.attempts, 2U);
  EXPECT_EQ(completion.lost.silent, 2U);
  EXPECT_EQ(completion.lost.bytes, 0U);
}

TEST(Lost, AnotherAttemptIsOnlyMadeWhereItMayBePaidFor) {
  const SocketServer server([](const Exchange& exchange, int number) {
    std::string half = HalfAStream();
    half[half.find(kHalf)] = static_cast<char>('0' + number);  // equal ones would end the call
    exchange.Send(ChunkedHead() + HttpChunk(half) + HttpChunk(""));
  });
  CompletionClient client(QuickOptions(server.Url()));
  std::promise<Completion> done;
  CompletionRequest request = Prompt("hello");
  std::vector<uint32_t> asked;
  request.may_send = [&](const Losses& losses) {
    asked.push_back(losses.attempts);
    EXPECT_EQ(losses.bytes, losses.attempts * std::string(kHalf).size());
    return losses.attempts < 3 ? Leave::kSend : Leave::kNever;
  };
  std::vector<uint32_t> waited;
  request.waits = [&](const Losses& losses) { waited.push_back(losses.attempts); };
  client.Send(std::move(request), [&](Completion completion) { done.set_value(std::move(completion)); });
  const Completion completion = done.get_future().get();
  EXPECT_EQ(completion.outcome, Outcome::kFailed);
  EXPECT_EQ(completion.failure, "budget");
  EXPECT_EQ(waited, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(completion.attempts, 3U);
  EXPECT_EQ(asked, (std::vector<uint32_t>{0, 1, 2, 3}));
}

// curl sends a request again by itself where a connection that was kept open closes on it.
TEST(Lost, AKeptConnectionThatClosesOnARequestCostsNothing) {
  std::atomic<int> requests = 0;
  const SocketServer server([&](const Exchange& exchange, int number) {
    ++requests;
    exchange.Send(Http(WholeAnswer("right")));
    if (number == 1 && exchange.AwaitNext()) ++requests;  // and closes
  });
  CompletionClient client(QuickOptions(server.Url()));
  ASSERT_EQ(Ask(client, "first").outcome, Outcome::kAnswered);
  const Completion completion = Ask(client, "second");
  ASSERT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
  EXPECT_EQ(completion.attempts, 2U);
  EXPECT_EQ(completion.lost.attempts, 0U);
  EXPECT_EQ(requests, 3);
}

TEST(Lost, WhatIsCancelledWhileItIsAnsweredCounts) {
  std::promise<void> sent;
  const SocketServer server([&](const Exchange& exchange, int number) {
    if (number > 1) return;
    exchange.Send(ChunkedHead() + HttpChunk(HalfAStream()));
    sent.set_value();
    exchange.HoldUntilClosed();
  });
  CompletionClient client(QuickOptions(server.Url()));
  std::promise<Completion> done;
  client.Send(Prompt("hello"), [&](Completion completion) { done.set_value(std::move(completion)); });
  sent.get_future().wait();
  client.Cancel();
  const Completion completion = done.get_future().get();
  EXPECT_EQ(completion.outcome, Outcome::kCancelled);
  EXPECT_EQ(completion.lost.attempts, 1U);
}

// A stream that said its last has a moment to close; its answer is there all the same.
TEST(Lost, AWholeAnswerIsNotCancelled) {
  std::promise<void> sent;
  const SocketServer server([&](const Exchange& exchange, int) {
    if (exchange.Request().find("quick") != std::string::npos) {
      exchange.Send(Http(WholeAnswer("quick")));
      return;
    }
    exchange.Send(ChunkedHead() + HttpChunk(StreamedAnswer("right")));
    sent.set_value();
    exchange.HoldUntilClosed();
  });
  CompletionClient client(QuickOptions(server.Url()));
  std::promise<Completion> done;
  client.Send(Prompt("slow"), [&](Completion completion) { done.set_value(std::move(completion)); });
  sent.get_future().wait();
  // Whose answer comes later, and is read later.
  client.Send(Prompt("quick"), [&](const Completion&) { client.Cancel(); });
  const Completion completion = done.get_future().get();
  EXPECT_EQ(completion.outcome, Outcome::kAnswered);
  EXPECT_EQ(completion.text, "right");
  EXPECT_EQ(completion.lost.attempts, 0U);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
