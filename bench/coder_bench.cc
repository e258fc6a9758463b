// Cost and losses of the coder's HTTP client, against a server on this machine that answers after a fixed delay.
//
//   coder_bench [--concurrency 256] [--count 5120] [--delay 0.2]
//               [--failing 0.2] [--failing-count 1000] [--events 200]
//
// Three runs: whole answers, streamed answers, and streamed answers of which a share fails by 429, 500 and reset
// connections. Prints a CSV line for each: run, requests, right answers, attempts, most attempts of one request,
// seconds, throughput as a share of concurrency / delay, milliseconds of this process's CPU a call, MiB of memory more
// than before the client was made, threads more than before. Then the bounds that docs/coder_service.md promises, and
// whether they were kept: the exit status is 1 where one was not.
#include <kgrpo/sdk/error.h>
#include <malloc.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "coder_gpt4o/completion_client.h"
#include "common/command.h"
#include "common/figures.h"
#include "delay_server.h"
#include "process_holdings.h"

namespace {

using kgrpo::bench::Holdings;
using kgrpo::bench::LookAtProcess;
using kgrpo::coder_gpt4o::ClientOptions;
using kgrpo::coder_gpt4o::Completion;
using kgrpo::coder_gpt4o::CompletionClient;
using Clock = std::chrono::steady_clock;

// Bounds on the client's cost; docs/coder_service.md.
constexpr double kLeastThroughput = 0.95;
constexpr double kMostMilliseconds = 0.5;
constexpr double kMostMillisecondsAPiece = 0.01;
constexpr double kMostMiB = 64;
constexpr double kMostThreads = 1;

struct Arguments {
  uint32_t concurrency = 256;
  uint32_t count = 5120;
  double delay = 0.2;
  double failing = 0.2;
  uint32_t failing_count = 1000;
  uint32_t events = 200;
};

struct Measured {
  uint64_t right = 0;
  uint64_t attempts = 0;
  uint64_t most_attempts = 0;
  uint64_t retries = 0;
  double seconds = 0;
  double throughput = 0;
  double milliseconds = 0;
  double mib = 0;
  double threads = 0;
};

double CpuSeconds(int who) {
  rusage usage = {};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A prompt of a usual length: a kernel of 4 KB twice, and words.
std::string Body(uint32_t number) {
  return R"({"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"request )" + std::to_string(number) +
         std::string(10000, 'x') + R"("}]})";
}

Measured Measure(const Arguments& arguments, bool stream, double failing, ClientOptions options) {
  const uint32_t count = failing > 0 ? arguments.failing_count : arguments.count;
  const kgrpo::bench::DelayServerOptions server_options = {arguments.delay, failing, stream, arguments.events, 1};
  const std::string text = AnswerText(server_options);
  const kgrpo::bench::DelayServer server(server_options);
  options.base_url = server.Url();
  options.stream = stream;
  malloc_trim(0);  // memory that the run before freed does not count for this one
  const Holdings before = LookAtProcess();
  Measured measured;
  std::mutex mutex;
  std::condition_variable ended;
  uint32_t sent = 0;      // guarded
  uint32_t left = count;  // guarded
  double sampling = 0;    // CPU seconds of looking at this process
  const double cpu = CpuSeconds(RUSAGE_SELF);
  const auto start = Clock::now();
  {
    CompletionClient client(options);
    // As many at once as can be in flight and a few that wait; each that ends sends the next.
    std::function<void()> send_next;
    const auto done = [&](const Completion& completion) {
      bool more = false;
      {
        const std::lock_guard lock(mutex);
        if (completion.outcome == Completion::Outcome::kAnswered && completion.text == text) ++measured.right;
        measured.attempts += completion.attempts;
        measured.most_attempts = std::max<uint64_t>(measured.most_attempts, completion.attempts);
        more = sent < count;
        if (--left == 0) ended.notify_one();
      }
      if (more) send_next();
    };
    send_next = [&] {
      uint32_t number = 0;
      {
        const std::lock_guard lock(mutex);
        if (sent == count) return;
        number = sent++;
      }
      client.Send({Body(number), 5000}, done);
    };
    for (uint32_t i = 0; i < arguments.concurrency + arguments.concurrency / 8; ++i) send_next();
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return left == 0; })) {
      lock.unlock();
      const double before_sample = CpuSeconds(RUSAGE_THREAD);
      const Holdings now = LookAtProcess();
      sampling += CpuSeconds(RUSAGE_THREAD) - before_sample;
      lock.lock();
      measured.mib = std::max(measured.mib, now.rss_mib - before.rss_mib);
      measured.threads = std::max(measured.threads, now.threads - before.threads);
    }
    measured.seconds = kgrpo::bench::SecondsSince(start);
    measured.retries = measured.attempts - count;
  }
  measured.milliseconds = (CpuSeconds(RUSAGE_SELF) - cpu - sampling) * 1000 / count;
  measured.throughput = count / measured.seconds / (arguments.concurrency / arguments.delay);
  return measured;
}

bool Kept(const char* what, bool kept) {
  std::printf("# %s: %s\n", what, kept ? "kept" : "NOT KEPT");
  std::fflush(stdout);
  return kept;
}

// True if every bound was kept.
bool Run(const Arguments& arguments) {
  ClientOptions options;
  options.max_concurrency = arguments.concurrency;
  std::printf("run,requests,right,attempts,most_attempts,seconds,throughput,cpu_ms,memory_mib,threads\n");
  bool kept = true;
  for (const char* run : {"whole", "streamed", "failing"}) {
    const bool failing = run == std::string("failing");
    const bool stream = run != std::string("whole");
    const uint32_t count = failing ? arguments.failing_count : arguments.count;
    const Measured measured = Measure(arguments, stream, failing ? arguments.failing : 0, options);
    std::printf("%s,%u,%llu,%llu,%llu,%.3f,%.3f,%.3f,%.1f,%.0f\n", run, count,
                static_cast<unsigned long long>(measured.right), static_cast<unsigned long long>(measured.attempts),
                static_cast<unsigned long long>(measured.most_attempts), measured.seconds, measured.throughput,
                measured.milliseconds, measured.mib, measured.threads);
    std::fflush(stdout);
    kept &= Kept("every request ended right", measured.right == count);
    kept &= Kept("one thread more", measured.threads <= kMostThreads);
    if (failing) {
      kept &= Kept("none was sent more often than max_attempts", measured.most_attempts <= options.max_attempts);
    } else {
      // All answers come at once here, after the same delay, so the time to read them delays the next round. Pieces of
      // real streams come spread over seconds.
      if (!stream) kept &= Kept("at least 95% of concurrency / delay", measured.throughput >= kLeastThroughput);
      const double pieces = stream ? kMostMillisecondsAPiece * arguments.events : 0;
      kept &= Kept("at most 0.5 ms of CPU a call, and 10 us a piece of a stream",
                   measured.milliseconds <= kMostMilliseconds + pieces);
      kept &= Kept("at most 64 MiB more memory", measured.mib <= kMostMiB);
    }
  }
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("What the coder's HTTP client costs and loses, against a server that answers after a fixed delay",
               "coder_bench");
  app.add_option("--concurrency", arguments.concurrency, "requests in flight")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--count", arguments.count, "requests of a run")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  app.add_option("--delay", arguments.delay, "seconds until the server answers")
      ->check(CLI::Range(0.001, 60.0))
      ->capture_default_str();
  app.add_option("--failing", arguments.failing, "the share of attempts that fail in the third run")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  app.add_option("--failing-count", arguments.failing_count, "requests of the third run")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  app.add_option("--events", arguments.events, "pieces of text in an answer")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  return kgrpo::bench::RunCommand(app, argc, argv, [&] { return Run(arguments); });
}
