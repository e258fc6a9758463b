// Calls that must not block, and delays that must do no harm: the client's one thread is delayed by a callback, by a
// name lookup, or not at all.
#include <dlfcn.h>
#include <netdb.h>

#include <condition_variable>

#include "server.h"
#include "socket_server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Outcome = Completion::Outcome;

constexpr char kSlowName[] = "slow.invalid";

// A name server that says nothing of kSlowName until the test is over.
struct SlowNames {
  std::mutex mutex;
  std::condition_variable changed;
  int asking = 0;         // guarded
  bool released = false;  // guarded

  void Hold() {
    std::unique_lock lock(mutex);
    ++asking;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(10), [this] { return released; });
    --asking;
    changed.notify_all();
  }
};

SlowNames& Names() {
  static SlowNames names;
  return names;
}

void SleepMilliseconds(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace

// libcurl calls this one instead of the C library's.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  if (node != nullptr && std::strcmp(node, kSlowName) == 0) {
    Names().Hold();
    return EAI_NONAME;
  }
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(node, service, hints, result);
}

namespace {

TEST(Stall, ANameThatIsLookedUpHoldsNothingUp) {
  const Server server([](const auto& request, auto& response, int) { AnswerRight(request, response, "right"); });
  CompletionClient client(QuickOptions("http://" + std::string(kSlowName) + "/v1"));
  std::promise<Completion> done;
  client.Send(Prompt("hello"), [&](Completion completion) { done.set_value(std::move(completion)); });
  SlowNames& names = Names();
  {
    std::unique_lock lock(names.mutex);
    names.changed.wait(lock, [&] { return names.asking == 1; });
  }
  client.Cancel();
  EXPECT_EQ(done.get_future().get().outcome, Outcome::kCancelled);
  std::unique_lock lock(names.mutex);
  EXPECT_EQ(names.asking, 1);  // still
  names.released = true;
  names.changed.notify_all();
  names.changed.wait(lock, [&] { return names.asking == 0; });
}

// Data that came while the thread was held up is read before any request is called silent.
TEST(Stall, AHeldUpThreadDoesNotTakeAStreamForSilent) {
  std::promise<void> begun;
  std::promise<void> held_up;
  std::shared_future<void> is_held_up = held_up.get_future().share();
  std::promise<void> all_sent;
  const std::string stream = StreamedAnswer("right");
  const SocketServer server([&](const Exchange& exchange, int) {
    if (exchange.Request().find("quick") != std::string::npos) {
      exchange.Send(Http(WholeAnswer("quick")));
      return;
    }
    exchange.Send(ChunkedHead() + HttpChunk(stream.substr(0, stream.size() / 2)));
    begun.set_value();
    is_held_up.wait();
    exchange.Send(HttpChunk(stream.substr(stream.size() / 2)) + HttpChunk(""));
    all_sent.set_value();
  });
  ClientOptions options = QuickOptions(server.Url());
  options.response_timeout_seconds = 1;
  options.idle_timeout_seconds = 1;
  options.max_attempts = 1;
  CompletionClient client(options);
  std::promise<Completion> done;
  client.Send(Prompt("slow"), [&](Completion completion) { done.set_value(std::move(completion)); });
  begun.get_future().wait();
  client.Send(Prompt("quick"), [&](const Completion&) {
    held_up.set_value();
    all_sent.get_future().wait();
    SleepMilliseconds(1200);  // past the deadline of the other
  });
  const Completion completion = done.get_future().get();
  EXPECT_EQ(completion.outcome, Outcome::kAnswered) << completion.message;
  EXPECT_EQ(completion.text, "right");
}

// The first answer's headers say that no request is left: the second must not go out while that answer still streams.
TEST(Stall, RateLimitsAreLearntWhenTheHeadersEnd) {
  std::promise<void> head_sent;
  std::promise<void> end;
  std::shared_future<void> may_end = end.get_future().share();
  const std::string stream = StreamedAnswer("right");
  const SocketServer server([&](const Exchange& exchange, int number) {
    if (number > 1) return;
    SleepMilliseconds(50);  // until the client waits for the answer
    exchange.Send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
        "x-ratelimit-limit-requests: 100\r\nx-ratelimit-remaining-requests: 0\r\n"
        "x-ratelimit-reset-requests: 24h\r\n\r\n");
    head_sent.set_value();
    may_end.wait();
    exchange.Send(HttpChunk(stream) + HttpChunk(""));
  });
  ClientOptions options = QuickOptions(server.Url());
  options.max_outage_seconds = 3600;  // no reported limit makes a request wait for longer
  const Notices notices(options);
  CompletionClient client(options);
  std::promise<Completion> first;
  std::promise<Completion> second;
  client.Send(Prompt("first"), [&](Completion completion) { first.set_value(std::move(completion)); });
  head_sent.get_future().wait();
  client.Send(Prompt("second"), [&](Completion completion) { second.set_value(std::move(completion)); });
  SleepMilliseconds(300);  // in which it would be sent
  end.set_value();
  EXPECT_EQ(first.get_future().get().outcome, Outcome::kAnswered);
  EXPECT_EQ(server.Count(), 1);
  client.Cancel();
  EXPECT_EQ(second.get_future().get().attempts, 0U);
  const std::string told = notices.All();
  EXPECT_THAT(told, testing::HasSubstr("the next request is sent in 8"));  // a hundredth of a day
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
