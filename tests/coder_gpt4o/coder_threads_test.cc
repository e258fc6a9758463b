// coder_gpt4o/coder.h from many threads at once, as the host calls it, with a service that answers on a thread of its
// own: every request is answered exactly once, whatever happens meanwhile.
#include "bench.h"

#include "test.h"

#include <condition_variable>

namespace kgrpo::coder_gpt4o {
namespace {

// Answers in turns with a kernel, a failure and an answer that was cut off.
class ThreadedService {
 public:
  ThreadedService() : thread_([this] { Run(); }) {}
  ~ThreadedService() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  Service service() {
    return {[this](CompletionRequest request, std::function<void(Completion)> done) {
              const std::lock_guard lock(mutex_);
              calls_.emplace_back(std::move(request.may_send), std::move(done));
              changed_.notify_one();
            },
            [this] {
              const std::lock_guard lock(mutex_);
              cancel_ = true;
              changed_.notify_one();
            }};
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (size_t number = 0;; ++number) {
      changed_.wait(lock, [this] { return ended_ || !calls_.empty(); });
      if (calls_.empty()) return;
      const auto [may_send, done] = std::move(calls_.front());
      calls_.pop_front();
      const bool cancelled = cancel_;
      if (calls_.empty()) cancel_ = false;
      lock.unlock();
      Completion completion = number % 5 == 1   ? Failed()
                              : number % 5 == 3 ? AnswerOf("```cuda\nvoid launch() { int n;", "length")
                                                : AnswerOf(Fenced(kKernelC));
      if (cancelled) {
        completion = Completion{};  // it was not sent
        completion.outcome = Completion::Outcome::kCancelled;
      } else if (may_send({}) != Leave::kSend) {  // one at a time: none waits for another
        completion = Failed();
        completion.failure = "budget";
      }
      done(completion);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::function<Leave(const Losses&)>, std::function<void(Completion)>>> calls_;
  bool cancel_ = false, ended_ = false;
  std::thread thread_;
};

struct Counted {
  std::atomic<int> calls{0};
};

void Storm(const char* mode, double max_cost, bool cancel) {
  const auto folder = TestFolder(std::string("threads_") + mode);
  constexpr size_t kThreads = 4, kEach = 60;
  std::deque<Asked> asked;
  std::deque<Counted> counted(kThreads * kEach);
  for (size_t i = 0; i < counted.size(); ++i) asked.emplace_back("word " + std::to_string(i % 17), i);
  Recordings recordings = RecordedIn(folder, std::string(mode) == "cache" ? folder / "cache.sqlite" : "");
  {
    std::optional<Coder> coder;
    ThreadedService service;  // goes first: its thread calls the coder
    Coder& busy = coder.emplace(OptionsWith({{"mode", mode}, {"prices", kPrices}, {"max_cost", max_cost}}),
                                service.service(), std::move(recordings), Reports{});
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = t * kEach; i < (t + 1) * kEach; ++i) {
          busy.Implement(asked[i].request(),
                         {&counted[i], [](void* context, const kgrpo_coder_answer*, kgrpo_error* error) {
                            if (error != nullptr) error->release(error);
                            ++static_cast<Counted*>(context)->calls;
                          }});
          if (cancel && i % 20 == 19) busy.Cancel();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Counted& one : counted) {
      while (one.calls == 0) std::this_thread::yield();
    }
    EXPECT_LE(busy.Spending().cost, max_cost);
  }
  for (const Counted& one : counted) EXPECT_EQ(one.calls, 1);
}

TEST(CoderThreadsTest, EveryRequestIsAnsweredOnce) {
  Storm("live", 1000, false);
  Storm("cache", 1000, false);
}

TEST(CoderThreadsTest, AlsoWhenTheMoneyRunsOut) {
  Storm("live", 0.2, false);
  Storm("cache", 0.1, false);
}

TEST(CoderThreadsTest, AlsoWhenItIsCancelled) {
  Storm("live", 1000, true);
  Storm("cache", 0.5, true);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
