// Many requests at once, from many threads, cancelled in the middle.
#include <latch>

#include <kgrpo/support/sha256.h>
#include "server.h"
#include "socket_server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

// A fifth of all attempts fail, by three kinds in turn; which ones follows from prompt and attempt alone. Each prompt
// gets its own answer.
TEST(Many, AFifthFailingLosesNone) {
  const Server server([](const auto& request, auto& response, int attempt) {
    const std::string digest = Sha256(request.body + std::to_string(attempt));
    if (digest < "33333") {
      if (digest[1] < '5') {
        AnswerError(response, 429, ErrorBody("slow down"));
        response.set_header("retry-after-ms", "2");
      } else if (digest[1] < 'a') {
        AnswerError(response, 500, ErrorBody("oops"));
      } else {  // breaks off in the middle
        response.set_content_provider(1000, "application/json", [](size_t offset, size_t, httplib::DataSink& sink) {
          return offset == 0 && sink.write("{\"choices\":", 11);
        });
      }
    } else {
      AnswerRight(request, response, request.body.substr(0, request.body.find(",\"stream\"")));
    }
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_attempts = 10;
  const Notices notices(options);
  CompletionClient client(options);
  const auto prompts = Prompts(400);
  const auto completions = AskAll(client, prompts);
  uint64_t attempts = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    ASSERT_EQ(completions[i].text + "}", Prompt(prompts[i]).body) << completions[i].message;
    attempts += completions[i].attempts;
  }
  EXPECT_GT(attempts, 440U);
  EXPECT_EQ(attempts, server.Count());
  EXPECT_THAT(notices.All(), HasSubstr("the service's rate limit was hit"));
}

TEST(Many, NoMoreThanAllowedAreInFlight) {
  std::latch five(5);
  const Server server([&](const auto& request, auto& response, int attempt) {
    if (request.body.find("first") != std::string::npos && attempt == 1) five.arrive_and_wait();
    AnswerRight(request, response, "right");
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_concurrency = 5;
  CompletionClient client(options);
  AskAll(client, {"first 1", "first 2", "first 3", "first 4", "first 5", "6", "7", "8", "9"});
  EXPECT_EQ(server.MostAtOnce(), 5);
}

// As a local server with one slot: the others wait, and time out. It notices when a client leaves.
TEST(Many, TimeOutsLowerTheNumberInFlight) {
  std::mutex slot;
  const SocketServer server([&](const Exchange& exchange, int) {
    const std::lock_guard lock(slot);
    exchange.Send("HTTP/1.1 200 OK\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (!exchange.Send("Content-Type: text/event-stream\r\n")) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    exchange.Send("\r\n" + StreamedAnswer("right"));
  });
  constexpr int kCalls = 24;
  ClientOptions options = QuickOptions(server.Url());
  options.response_timeout_seconds = 0.25;  // for five answers
  const Notices notices(options);
  CompletionClient client(options);
  for (const Completion& completion : AskAll(client, Prompts(kCalls)))
    EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
  EXPECT_LT(server.Count(), 3 * kCalls);  // without a lower limit more than seven attempts for each call
  EXPECT_THAT(notices.All(), HasSubstr("lower max_concurrency"));
}

TEST(Many, RequestsMayBeSentFromManyThreadsAndFromCallbacks) {
  const Server server([](const auto& request, auto& response, int) { AnswerRight(request, response, "right"); });
  CompletionClient client(QuickOptions(server.Url()));
  constexpr int kThreads = 8;
  constexpr int kEach = 20;
  std::latch answered(kThreads * kEach * 2);
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const std::string prompt = std::to_string(t) + " " + std::to_string(i);
        client.Send(Prompt(prompt), [&, prompt](const Completion& first) {
          right += first.outcome == Outcome::kAnswered ? 1 : 0;
          client.Send(Prompt(prompt + " again"), [&](const Completion& second) {
            right += second.outcome == Outcome::kAnswered ? 1 : 0;
            answered.count_down();
          });
          answered.count_down();
        });
      }
    });
  }
  answered.wait();
  EXPECT_EQ(right, kThreads * kEach * 2);
}

// The server never answers: without Cancel the requests would wait for a minute.
TEST(Many, CancelAnswersWhatIsInFlightAndWhatWaits) {
  std::atomic<int> holding = 0;
  const SocketServer server([&](const Exchange& exchange, int) {
    if (exchange.Request().find("after") != std::string::npos) {
      exchange.Send(Http(WholeAnswer("right")));
    } else {
      ++holding;
      exchange.HoldUntilClosed();
    }
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_concurrency = 8;
  CompletionClient client(options);
  constexpr int kRequests = 20;
  std::latch answered(kRequests);
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < kRequests; ++i) {
    client.Send(Prompt(std::to_string(i)), [&](const Completion& completion) {
      cancelled += completion.outcome == Outcome::kCancelled && completion.failure == "cancelled" ? 1 : 0;
      answered.count_down();
    });
  }
  while (holding < 8) std::this_thread::yield();
  client.Cancel();
  answered.wait();
  EXPECT_EQ(cancelled, kRequests);
  EXPECT_EQ(Ask(client, "after").outcome, Outcome::kAnswered);  // the client goes on
}

TEST(Many, CancelEndsAnOutagesWaiting) {
  const Server server([](const auto&, auto& response, int) { AnswerError(response, 500, ""); });
  ClientOptions options = QuickOptions(server.Url());
  options.probe_pause_seconds = 1000;
  options.probe_pause_cap_seconds = 1000;
  options.max_outage_seconds = 10000;
  std::promise<void> opened;
  options.notice = [&, first = true](const std::string&) mutable {
    if (std::exchange(first, false)) opened.set_value();
  };
  CompletionClient client(options);
  std::latch answered(10);
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < 10; ++i) {
    client.Send(Prompt(std::to_string(i)), [&](const Completion& completion) {
      cancelled += completion.outcome == Outcome::kCancelled ? 1 : 0;
      answered.count_down();
    });
  }
  opened.get_future().wait();
  client.Cancel();
  answered.wait();
  EXPECT_EQ(cancelled, 10);
}

TEST(Many, TheClientsEndAnswersEverythingOnce) {
  const SocketServer server([&](const Exchange& exchange, int) { exchange.HoldUntilClosed(); });
  std::atomic<int> answers = 0;
  std::atomic<int> again = 0;
  {
    auto client = std::make_unique<CompletionClient>(QuickOptions(server.Url()));
    for (int i = 0; i < 20; ++i) {
      client->Send(Prompt(std::to_string(i)), [&, sender = client.get()](const Completion& completion) {
        EXPECT_EQ(completion.outcome, Outcome::kCancelled);
        ++answers;
        // Requests that a callback sends now are cancelled as well.
        sender->Send(Prompt("again"), [&](const Completion& late) {
          EXPECT_EQ(late.outcome, Outcome::kCancelled);
          ++again;
        });
      });
    }
  }
  EXPECT_EQ(answers, 20);
  EXPECT_EQ(again, 20);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
