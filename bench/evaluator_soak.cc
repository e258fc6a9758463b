// Thousands of evaluations in a row, every tenth of a kernel that crashes, hangs, breaks its CUDA context or exits:
// does anything leak, and does the evaluator stay correct?
//
//   evaluator_soak [--from 0] [--count 1000] [--threads 8] [--every 50] [--hang-seconds 1] PROBLEM_DIRECTORY...
//
// KernelEvaluation i is of problem i modulo their number (choose quick ones); its source differs from all others by a
// constant that holds i, so that no cache has it. 10,000 take 25 minutes of an H200. After every --every evaluations
// all threads stop and references' processes are ended; once the worker pool is full again, a CSV line shows what the
// process holds. The last three lines are where the time of an evaluation went, the verdicts by kind of kernel, and
// "leaks: none" or what grew. Exit codes: 0 neither a leak nor a wrong verdict, 1 one of them, 2 bad usage or no
// evaluator.
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/cache_folder.h"
#include "common/command.h"
#include "common/figures.h"
#include "common/parallel.h"
#include "evaluator_cuda/device_evaluator.h"
#include "judge/problem/random.h"
#include "process_holdings.h"

namespace {

using kgrpo::bench::Holdings;
using kgrpo::evaluator::OpenProblem;
using kgrpo::evaluator_cuda::DeviceEvaluator;

enum Kind { kPlain, kCrash, kHang, kStickyError, kExit, kKinds };
constexpr const char* kKindNames[kKinds] = {"plain", "crash", "hang", "sticky_error", "exit"};

Kind KindOf(uint64_t number) { return number % 10 == 9 ? static_cast<Kind>(1 + number / 10 % (kKinds - 1)) : kPlain; }

// The code that a launch function of that kind runs before its own work.
const char* MischiefOf(Kind kind) {
  switch (kind) {
    case kCrash: return " *(volatile int*)8 = 1;";
    case kHang: return " soak_spin<<<1, 1>>>(soak_number);";
    case kStickyError: return " soak_write<<<1, 1>>>(soak_number);";
    case kExit: return " exit(0);";
    default: return "";
  }
}

// The reference kernel, made unique by `number`, with the kind's mischief at the head of its launch function.
std::string SourceOf(const std::string& reference, uint64_t number) {
  const Kind kind = KindOf(number);
  const size_t launch = reference.find("extern \"C\" void launch(");
  const size_t body = launch == std::string::npos ? launch : reference.find('{', launch);
  if (body == std::string::npos)
    throw kgrpo::Error(KGRPO_ERROR_INVALID, "a reference kernel without a launch function");
  std::string head = "#include <cstdlib>\nconstexpr long long soak_number = " + std::to_string(number) + "LL;\n";
  if (kind == kHang) {
    head += "__global__ void soak_spin(long long number) {\n  while (number >= 0) __nanosleep(100);\n}\n";
  }
  if (kind == kStickyError) {
    head += "__global__ void soak_write(long long number) { *(volatile long long*)(number % 2 + 16) = number; }\n";
  }
  return head + reference.substr(0, body + 1) + MischiefOf(kind) + reference.substr(body + 1);
}

struct Arguments {
  uint64_t from = 0, count = 1000, every = 50;
  size_t threads = 8;
  double hang_seconds = 1;
  std::vector<std::string> problems;
};

class Soak {
 public:
  explicit Soak(const Arguments& arguments) : arguments_(arguments), evaluator_(OptionsFor(arguments)) {
    const std::string cache = kgrpo::bench::CacheFolder("evaluator-soak");
    for (const std::string& folder : arguments.problems) {
      problems_.push_back(std::make_unique<OpenProblem>(folder, cache));
    }
  }

  // True if nothing leaked and no verdict was unexpected.
  bool Run() {
    std::printf("# %s\njudged,seconds,open_files,children,zombies,threads,temporary_files,rss_mib,device_free_mib\n",
                evaluator_.Describe().c_str());
    const uint64_t end = arguments_.from + arguments_.count;
    for (uint64_t first = arguments_.from; first < end; first += arguments_.every) {
      JudgeAll(first, std::min(end, first + arguments_.every));
      Sample(std::min(end, first + arguments_.every));
    }
    return Conclude();
  }

 private:
  // Short timing: what is asked here is not how fast a kernel is.
  static DeviceEvaluator::Options OptionsFor(const Arguments& arguments) {
    DeviceEvaluator::Options options;
    options.call_seconds = arguments.hang_seconds;
    options.timing.precision = {0.2, 0};
    options.timing.budget_seconds = 0.03;
    options.timing.fewest_rounds = 3;
    options.timing.memory_bytes = uint64_t{256} << 20;
    options.seeds = 1;
    options.compilers = std::max<size_t>(1, std::min<size_t>(arguments.threads, std::thread::hardware_concurrency()));
    return options;
  }

  void JudgeAll(uint64_t first, uint64_t end) {
    kgrpo::bench::InParallel(arguments_.threads, first, end, [this](uint64_t i) { JudgeOne(i); });
  }

  void JudgeOne(uint64_t number) {
    const OpenProblem& open = *problems_[number % problems_.size()];
    const Kind kind = KindOf(number);
    const auto evaluation = evaluator_.Evaluate(open, SourceOf(open.problem.reference_source, number),
                                                kgrpo::evaluator::SubKey(13, number), false);
    const std::lock_guard lock(mutex_);
    ++verdicts_[kind][evaluation.verdict];
    for (const auto& [name, value] : evaluation.metrics) {
      if (name.starts_with("evaluator_")) seconds_[name] += value;
      if (name == "timing_looks" && value > 1) ++suspected_;
    }
    if (evaluation.correct == (kind == kPlain)) return;
    ++surprises_;
    std::printf("# evaluation %llu (%s, %s): %s: %.300s\n", static_cast<unsigned long long>(number), kKindNames[kind],
                open.problem.name.c_str(), evaluation.verdict.c_str(), evaluation.diagnosis.c_str());
  }

  // The number of references' processes that wait depends on the last evaluations, so they are ended. Workers are
  // replaced or ended outside of the evaluations' time: samples until two in a row are the same.
  void Sample(uint64_t judged) {
    evaluator_.EndReferences();
    Holdings holdings = kgrpo::bench::LookAtProcess();
    for (int tries = 0; tries < 40; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      const Holdings again = kgrpo::bench::LookAtProcess();
      const bool same = again.children == holdings.children && again.open_files == holdings.open_files;
      holdings = again;
      if (same) break;
    }
    holdings.device_free_mib = static_cast<double>(evaluator_.device().FreeBytes()) / (1 << 20);
    std::printf("%llu,%.1f,%.0f,%.0f,%.0f,%.0f,%.0f,%.1f,%.1f\n", static_cast<unsigned long long>(judged),
                kgrpo::bench::SecondsSince(start_), holdings.open_files, holdings.children, holdings.zombies,
                holdings.threads, holdings.temporary_files, holdings.rss_mib, holdings.device_free_mib);
    std::fflush(stdout);
    samples_.push_back(holdings);
  }

  bool Conclude() const {
    std::printf("seconds an evaluation:");
    for (const auto& [name, seconds] : seconds_)
      std::printf(" %s=%.3f", name.c_str(), seconds / static_cast<double>(arguments_.count));
    std::printf("\nverdicts:");
    for (int kind = 0; kind < kKinds; ++kind) {
      std::printf(" %s", kKindNames[kind]);
      for (const auto& [verdict, count] : verdicts_[kind]) std::printf(" %s=%zu", verdict.c_str(), count);
      std::printf(";");
    }
    std::printf(" suspected by time at first: %zu; unexpected: %zu\n", suspected_, surprises_);
    const std::string leaks = kgrpo::bench::Leaks(samples_);
    std::printf("leaks: %s\n", leaks.c_str());
    return leaks == "none" && surprises_ == 0;
  }

  const Arguments arguments_;
  DeviceEvaluator evaluator_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<OpenProblem>> problems_;
  std::vector<Holdings> samples_;
  std::mutex mutex_;  // guards what follows, and the output while evaluations run
  std::map<std::string, size_t> verdicts_[kKinds];
  std::map<std::string, double> seconds_;  // by the evaluator's metric that holds them, of all evaluations
  size_t suspected_ = 0, surprises_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  using namespace kgrpo::bench;
  Arguments arguments;
  CLI::App app("Judges many kernels, some of which misbehave, and looks for what is not given back.", "evaluator_soak");
  app.add_option("--from", arguments.from, "Number of the first evaluation")->capture_default_str();
  app.add_option("--count", arguments.count, "Evaluations")->check(CLI::PositiveNumber)->capture_default_str();
  AddThreads(app, arguments.threads);
  app.add_option("--every", arguments.every, "Evaluations between two looks at the process")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--hang-seconds", arguments.hang_seconds, "Limit for a batch of calls")->capture_default_str();
  AddProblems(app, arguments.problems)->required();
  return RunCommand(app, argc, argv, [&] { return Soak(arguments).Run(); });
}
