// Cost of a step's judging on the GPU: different kernels of several problems, judged from several threads, none of them
// seen before.
//
//   evaluator_throughput [--route fast|nvcc] [--checks interpreted|device] [--threads 8] [--count 64] [--budget 0.3]
//   [--clear-share 0.1] [--thorough] PROBLEM_DIRECTORY...
//
// The kernels are those that coder_offline writes for the problems, breadth first from each reference; the problems
// take turns in groups of four, as a step's trajectories do. Problems are opened (and their oracles compiled) before
// the clock starts; compiled references, workers' first calls and everything else are on it. Prints a CSV line an
// evaluation: route, problem, schedule, verdict, speedup, seconds of compiling, seconds from the request to the
// verdict, waiting included, and the seconds of these that held the device: preparing a process and its code, checking
// cases, timing; then a line "# route threads count total_s p50_s p95_s per_second correct held_s".
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
#include "common/variants.h"
#include "evaluator_cuda/device_evaluator.h"
#include "judge/problem/random.h"

namespace {

using Clock = std::chrono::steady_clock;
using kgrpo::bench::Quantile;
using kgrpo::bench::SecondsSince;
using kgrpo::evaluator::OpenProblem;
using kgrpo::evaluator_cuda::DeviceEvaluator;

constexpr size_t kGroup = 4;  // kernels of one problem that follow each other

struct Candidate {
  const OpenProblem* open;
  std::string source;
};

struct Arguments {
  std::string route = "fast", checks = "interpreted";
  size_t threads = 8, count = 64;
  bool thorough = false;
  double budget = 0.3, clear_share = kgrpo::evaluator_cuda::Precision().clear_share;
  std::vector<std::string> problems;
};

std::vector<Candidate> MakeCandidates(const std::vector<std::unique_ptr<OpenProblem>>& problems, size_t count) {
  std::vector<std::vector<std::string>> variants;
  for (const auto& open : problems) variants.push_back(kgrpo::bench::Variants(open->problem.reference_source, count));
  std::vector<Candidate> candidates;
  for (size_t first = 0; candidates.size() < count; first += kGroup) {
    const size_t before = candidates.size();
    for (size_t p = 0; p < problems.size(); ++p) {
      for (size_t i = first; i < std::min(first + kGroup, variants[p].size()) && candidates.size() < count; ++i) {
        candidates.push_back({problems[p].get(), variants[p][i]});
      }
    }
    if (candidates.size() == before) break;  // there are no more
  }
  return candidates;
}

void Measure(const Arguments& arguments) {
  const std::string cache = kgrpo::bench::CacheFolder("evaluator-throughput");
  std::vector<std::unique_ptr<OpenProblem>> problems;
  for (const std::string& folder : arguments.problems) {
    problems.push_back(std::make_unique<OpenProblem>(folder, cache));
  }
  const std::vector<Candidate> candidates = MakeCandidates(problems, arguments.count);
  DeviceEvaluator::Options options;
  options.route = kgrpo::evaluator::CompileRouteFromName(arguments.route);
  options.compilers = std::max<size_t>(1, std::min<size_t>(arguments.threads, std::thread::hardware_concurrency()));
  options.timing.memory_bytes = uint64_t{2} << 30;
  options.interpret = arguments.checks == "interpreted";
  options.timing.budget_seconds = arguments.budget;
  options.timing.precision.clear_share = arguments.clear_share;
  DeviceEvaluator evaluator(options);
  std::printf(
      "# %s\nroute,problem,schedule,verdict,speedup,compile_s,judgement_s,load_s,check_s,time_s,"
      "rounds,pairs,looks\n",
      evaluator.Describe().c_str());

  std::mutex mutex;  // guards the output and what follows
  std::vector<double> latencies;
  size_t correct = 0;
  double held = 0;  // seconds
  const Clock::time_point start = Clock::now();
  kgrpo::bench::InParallel(arguments.threads, 0, candidates.size(), [&](uint64_t i) {
    const Candidate& candidate = candidates[i];
    const Clock::time_point begin = Clock::now();
    const auto evaluation =
        evaluator.Evaluate(*candidate.open, candidate.source, kgrpo::evaluator::SubKey(11, i), arguments.thorough);
    const double seconds = SecondsSince(begin);
    const std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
    const auto metric = [&](const char* name) {
      const auto found = metrics.find(name);
      return found == metrics.end() ? 0.0 : found->second;
    };
    const double load = metric("judge_load_seconds"), check = metric("judge_check_seconds"),
                 time = metric("judge_time_seconds");
    const std::lock_guard lock(mutex);
    latencies.push_back(seconds);
    correct += evaluation.correct ? 1 : 0;
    held += load + check + time;
    std::printf("%s,%s,%s,%s,%.4f,%.3f,%.3f,%.3f,%.3f,%.3f,%.0f,%.0f,%.0f\n", arguments.route.c_str(),
                candidate.open->problem.name.c_str(), kgrpo::bench::ScheduleOf(candidate.source).c_str(),
                evaluation.verdict.c_str(), metric("speedup"), evaluation.compile_seconds, seconds, load, check, time,
                metric("timing_rounds"), metric("timing_pairs"), metric("timing_looks"));
  });
  const double total = SecondsSince(start);
  const auto count = static_cast<double>(candidates.size());
  std::printf(
      "# route threads count total_s p50_s p95_s per_second correct held_s\n# %s %zu %zu %.2f %.3f %.3f %.2f %zu "
      "%.2f\n",
      arguments.route.c_str(), arguments.threads, candidates.size(), total, Quantile(latencies, 0.5),
      Quantile(latencies, 0.95), count / total, correct, held);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kgrpo::bench;
  Arguments arguments;
  CLI::App app("Judges the kernels of one step, several at once.", "evaluator_throughput");
  AddRoute(app, arguments.route);
  AddChecks(app, arguments.checks);
  AddThreads(app, arguments.threads);
  app.add_option("--count", arguments.count, "Kernels")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--budget", arguments.budget, "Seconds of the device for one kernel's timing")->capture_default_str();
  app.add_option("--clear-share", arguments.clear_share, "As evaluator_cuda's option clear_share")
      ->capture_default_str();
  app.add_flag("--thorough", arguments.thorough, "Thorough evaluations");
  AddProblems(app, arguments.problems)->required();
  return RunCommand(app, argc, argv, [&] { Measure(arguments); });
}
