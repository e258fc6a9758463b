// Cost of the evaluator's service over its library, and its leaks.
//
//   serve_bench [--threads 2] [--count 60] [--repeat 3] PROBLEM_DIRECTORY...
//   serve_bench --soak 10000 [--abort 0.1] [--clients 8] PROBLEM_DIRECTORY...
//
// Both use evaluator_sim and the kernels that coder_offline writes. Without --soak the same kernels, none of them known
// before, are judged by the library and by a service in the same process, taking turns; each round prints a line, then
// come the medians and what a request takes beyond waiting and judging. With --soak so many requests are sent, a part
// of which is for kernels that nobody has seen and is aborted by the client within 20 ms; exit code 1 where something
// grew.
#include <arpa/inet.h>
#include <httplib.h>
#include <kgrpo/sdk/error.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/services.h"
#include "common/command.h"
#include "common/figures.h"
#include "common/parallel.h"
#include "common/variants.h"
#include "plugin/instances.h"
#include "plugin/library.h"
#include "process_holdings.h"
#include "serve/service.h"

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using kgrpo::Error;
using kgrpo::bench::Median;
using kgrpo::bench::Quantile;
using kgrpo::bench::SecondsSince;

struct Arguments {
  size_t threads = 2, count = 60, repeat = 3, soak = 0, clients = 8;
  double abort = 0.1;
  std::vector<std::string> problems;
};

struct Candidate {
  size_t problem;
  std::string source;
};

std::string NameOf(const std::string& folder) {
  return std::filesystem::path(folder).lexically_normal().filename().string();
}

// A service of evaluator_sim, and the evaluator itself.
class Bench {
 public:
  Bench(const Arguments& arguments, bool cache)
      : library_(std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../lib/kgrpo/evaluator_sim.so"),
        services_({}) {
    const nlohmann::json options = {{"cache", cache}, {"workers", arguments.threads}};
    auto evaluator =
        std::make_unique<kgrpo::Evaluator>(library_.Table<kgrpo_evaluator_interface>(kgrpo::Role::kEvaluator),
                                           services_.ForInstance("evaluator", "serve-bench"), options);
    evaluator_ = evaluator.get();
    for (const std::string& folder : arguments.problems) problems_.push_back(evaluator_->OpenProblem(folder));
    std::vector<kgrpo::serve::ServedDevice> devices;
    devices.push_back({"default", std::move(evaluator)});
    kgrpo::serve::ServiceOptions service;
    service.workers = arguments.threads;
    service_ = std::make_unique<kgrpo::serve::Service>(service, std::move(devices), arguments.problems, Json::object());
    port_ = service_->Bind("127.0.0.1", 0);
    thread_ = std::thread([this] { service_->Run([this] { return stop_.load(); }); });
  }
  ~Bench() {
    stop_ = true;
    thread_.join();
    problems_.clear();
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  kgrpo::Evaluator& evaluator() { return *evaluator_; }
  const kgrpo::Problem& problem(size_t i) const { return problems_[i]; }
  kgrpo::serve::Service& service() { return *service_; }
  int port() const { return port_; }

  std::vector<Candidate> Candidates(size_t count) const {
    std::vector<std::vector<std::string>> variants;
    for (const kgrpo::Problem& problem : problems_)
      variants.push_back(kgrpo::bench::Variants(kgrpo::Copy(problem.info().source), count / problems_.size() + 1));
    std::vector<Candidate> candidates;
    for (size_t i = 0; candidates.size() < count && i <= count; ++i) {
      for (size_t p = 0; p < variants.size() && candidates.size() < count; ++p) {
        if (i < variants[p].size()) candidates.push_back({p, variants[p][i]});
      }
    }
    return candidates;
  }

 private:
  kgrpo::PluginLibrary library_;
  kgrpo::HostServices services_;
  kgrpo::Evaluator* evaluator_ = nullptr;
  std::vector<kgrpo::Problem> problems_;
  std::unique_ptr<kgrpo::serve::Service> service_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  int port_ = 0;
};

// CPU time of this process: of requests, JSON and interpreting, not of compilers and candidates' host code. Unlike
// wall-clock time it has a meaning on a shared machine.
double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string BodyOf(const Arguments& arguments, const Candidate& candidate) {
  return Json{{"problem", NameOf(arguments.problems[candidate.problem])}, {"source", candidate.source}}.dump();
}

void Throughput(const Arguments& arguments) {
  Bench bench(arguments, false);
  const std::vector<Candidate> candidates = bench.Candidates(arguments.count);
  // Warm up, since the first evaluation of a problem costs more.
  for (size_t i = 0; i < arguments.problems.size(); ++i) {
    const Candidate reference = {i, kgrpo::Copy(bench.problem(i).info().source)};
    bench.evaluator().Evaluate(bench.problem(i), reference.source, 0);
    httplib::Client("127.0.0.1", bench.port())
        .Post("/v1/evaluations", BodyOf(arguments, reference), "application/json");
  }
  std::vector<double> library, service, library_cpu, service_cpu, overhead;
  std::mutex mutex;
  const auto count = static_cast<double>(candidates.size());
  for (size_t round = 0; round < arguments.repeat; ++round) {
    Clock::time_point start = Clock::now();
    double cpu = CpuSeconds();
    kgrpo::bench::InParallel(arguments.threads, 0, candidates.size(), [&](uint64_t i) {
      bench.evaluator().Evaluate(bench.problem(candidates[i].problem), candidates[i].source, 0);
    });
    library.push_back(count / SecondsSince(start));
    library_cpu.push_back((CpuSeconds() - cpu) / count);
    start = Clock::now();
    cpu = CpuSeconds();
    // Twice as many clients as workers keep these busy.
    kgrpo::bench::InParallel(2 * arguments.threads, 0, candidates.size(), [&](uint64_t i) {
      thread_local std::unique_ptr<httplib::Client> client;
      if (client == nullptr) {
        client = std::make_unique<httplib::Client>("127.0.0.1", bench.port());
        client->set_keep_alive(true);
        client->set_tcp_nodelay(true);
        client->set_read_timeout(600);
      }
      const std::string body = BodyOf(arguments, candidates[i]);
      const Clock::time_point begin = Clock::now();
      const httplib::Result result = client->Post("/v1/evaluations", body, "application/json");
      const double seconds = SecondsSince(begin);
      if (!result || result->status != 200)
        throw Error(KGRPO_ERROR_UNAVAILABLE, result ? result->body : httplib::to_string(result.error()));
      const Json found = Json::parse(result->body)["results"][0];
      const std::lock_guard<std::mutex> lock(mutex);
      overhead.push_back(seconds - found["queue_seconds"].get<double>() - found["evaluate_seconds"].get<double>());
    });
    service.push_back(count / SecondsSince(start));
    service_cpu.push_back((CpuSeconds() - cpu) / count);
    std::printf("%zu kernels: library %.2f/s, %.1f ms of CPU each; service %.2f/s, %.1f ms\n", candidates.size(),
                library.back(), 1e3 * library_cpu.back(), service.back(), 1e3 * service_cpu.back());
    std::fflush(stdout);
  }
  std::printf(
      "# threads kernels library_per_s service_per_s ratio library_cpu_ms service_cpu_ms overhead_p50_ms "
      "overhead_p99_ms\n"
      "# %zu %zu %.2f %.2f %.3f %.2f %.2f %.2f %.2f\n",
      arguments.threads, candidates.size(), Median(library), Median(service), Median(service) / Median(library),
      1e3 * Median(library_cpu), 1e3 * Median(service_cpu), 1e3 * Quantile(overhead, 0.5),
      1e3 * Quantile(overhead, 0.99));
}

// Sends a request and closes the connection `milliseconds` later.
void Abort(int port, const std::string& body, uint64_t milliseconds) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request =
        "POST /v1/evaluations HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    if (send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }
  close(socket);
}

int Soak(const Arguments& arguments) {
  Bench bench(arguments, true);
  const std::vector<Candidate> candidates = bench.Candidates(arguments.count);
  std::vector<kgrpo::bench::Holdings> holdings;
  std::atomic<size_t> answered{0}, aborted{0}, refused{0};
  const auto abort_every = arguments.abort > 0 ? static_cast<uint64_t>(1 / arguments.abort) : arguments.soak + 1;
  constexpr size_t kSamples = 20;
  const Clock::time_point start = Clock::now();
  for (size_t sample = 0; sample < kSamples; ++sample) {
    kgrpo::bench::InParallel(arguments.clients, sample * arguments.soak / kSamples,
                             (sample + 1) * arguments.soak / kSamples, [&](uint64_t i) {
                               Candidate candidate = candidates[i % candidates.size()];
                               if (i % abort_every == 0) {
                                 candidate.source += "// " + std::to_string(i) + "\n";  // so that no cache has it
                                 Abort(bench.port(), BodyOf(arguments, candidate), i / abort_every % 20);
                                 ++aborted;
                                 return;
                               }
                               httplib::Client client("127.0.0.1", bench.port());
                               client.set_read_timeout(600);
                               const httplib::Result result =
                                   client.Post("/v1/evaluations", BodyOf(arguments, candidate), "application/json");
                               if (!result) throw Error(KGRPO_ERROR_UNAVAILABLE, httplib::to_string(result.error()));
                               ++(result->status == 200 ? answered : refused);
                             });
    while (bench.service().active() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for what was cancelled to end
    holdings.push_back(kgrpo::bench::LookAtProcess());
    const kgrpo::bench::Holdings& now = holdings.back();
    std::printf("%zu requests, %.0f s: %.0f files, %.0f children, %.0f threads, %.0f temporary files, %.1f MiB\n",
                (sample + 1) * arguments.soak / kSamples, SecondsSince(start), now.open_files, now.children,
                now.threads, now.temporary_files, now.rss_mib);
    std::fflush(stdout);
  }
  const std::string leaks = kgrpo::bench::Leaks(holdings);
  std::printf("# answered aborted refused seconds leaks\n# %zu %zu %zu %.1f %s\n", answered.load(), aborted.load(),
              refused.load(), SecondsSince(start), leaks.c_str());
  return leaks == "none" && refused == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kgrpo::bench;
  Arguments arguments;
  int code = 0;
  CLI::App app("What the evaluator's service costs over its library.", "serve_bench");
  AddThreads(app, arguments.threads);
  app.add_option("--count", arguments.count, "Kernels")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--repeat", arguments.repeat, "Rounds")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--soak", arguments.soak, "Requests, to see whether something leaks");
  app.add_option("--abort", arguments.abort, "With --soak: the part that the client aborts")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--clients", arguments.clients, "With --soak: clients at the same time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddProblems(app, arguments.problems)->required();
  const int ended = RunCommand(app, argc, argv, [&] {
    if (arguments.soak > 0)
      code = Soak(arguments);
    else
      Throughput(arguments);
  });
  return ended != 0 ? ended : code;
}
