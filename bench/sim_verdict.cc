// How long a verdict without a GPU takes, from source to evaluation, and where that time goes.
//
//   sim_verdict [--route fast|nvcc] [--threads 1] [--variants 3] [--folder build/test_data/judging/honest]
//   PROBLEM_DIRECTORY...
//
// Nothing is cached but compiled oracles. A problem's reference comes before its other kernels: it pays for what is
// computed once a problem and process, the inputs and the oracle at the timing size, and has percentiles of its own.
// Prints a CSV line an evaluation: route, kernel, first (of its problem), verdict, seconds of compiling, of the oracle
// and of everything else at correctness sizes, of the timing size, and from asking to the verdict; then lines
// "# route threads first|later count p50_s p95_s" and the median of each stage. With several --threads the stages
// include waiting for a core.
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/command.h"
#include "common/figures.h"
#include "common/parallel.h"
#include "evaluator_sim/kernel_evaluator.h"
#include "judge/problem/random.h"
#include "sim_kernels.h"

namespace {

using Clock = std::chrono::steady_clock;
using kgrpo::bench::Quantile;
using kgrpo::bench::SimKernel;

struct Arguments {
  std::string route = "fast", folder;
  size_t threads = 1, variants = 3;
  std::vector<std::string> problems;
};

constexpr const char* kStages[] = {"compile", "oracle", "correctness", "timing", "total"};
using Seconds = std::array<double, std::size(kStages)>;

void Summarise(const Arguments& arguments, const char* name, const std::vector<Seconds>& seconds) {
  if (seconds.empty()) return;
  const auto stage = [&](size_t s) {
    std::vector<double> values;
    for (const Seconds& one : seconds) values.push_back(one[s]);
    return values;
  };
  const std::vector<double> total = stage(std::size(kStages) - 1);
  std::printf("# %s %zu %s %zu %.3f %.3f", arguments.route.c_str(), arguments.threads, name, seconds.size(),
              Quantile(total, 0.5), Quantile(total, 0.95));
  for (size_t s = 0; s + 1 < std::size(kStages); ++s)
    std::printf(" %s %.3f %.3f", kStages[s], Quantile(stage(s), 0.5), Quantile(stage(s), 0.95));
  std::printf("\n");
}

void Measure(const Arguments& arguments) {
  const kgrpo::bench::SimKernels kernels(arguments.problems, arguments.variants, arguments.folder);
  kgrpo::evaluator_sim::KernelEvaluator::Options options;
  options.route = kgrpo::evaluator::CompileRouteFromName(arguments.route);
  options.concurrency = arguments.threads;
  kgrpo::evaluator_sim::KernelEvaluator evaluator(options);
  std::printf("route,kernel,first,verdict,compile_s,oracle_s,correctness_s,timing_s,total_s\n");
  std::mutex mutex;  // guards the output and what follows
  std::map<const kgrpo::evaluator_sim::OpenProblem*, std::vector<SimKernel>> by_problem;
  for (const SimKernel& kernel : kernels.kernels()) by_problem[kernel.open].push_back(kernel);
  std::vector<SimKernel> order;  // all problems' first kernels first
  size_t firsts = 0;
  for (const auto& [open, those] : by_problem) order.push_back(those[0]);
  firsts = order.size();
  for (const auto& [open, those] : by_problem) order.insert(order.end(), those.begin() + 1, those.end());
  std::vector<Seconds> first_seconds, later_seconds;
  const auto work = [&](uint64_t i) {
    const Clock::time_point begin = Clock::now();
    const auto evaluation = evaluator.Evaluate(*order[i].open, order[i].source, kgrpo::evaluator::SubKey(11, i), false);
    const double total = kgrpo::bench::SecondsSince(begin);
    const std::lock_guard lock(mutex);
    std::printf("%s,%s,%d,%s,%.3f,%.3f,%.3f,%.3f,%.3f\n", arguments.route.c_str(),
                kgrpo::bench::CsvName(order[i].name).c_str(), i < firsts ? 1 : 0, evaluation.verdict.c_str(),
                evaluation.compile_seconds, evaluation.oracle_seconds, evaluation.correctness_seconds,
                evaluation.timing_seconds, total);
    std::fflush(stdout);
    (i < firsts ? first_seconds : later_seconds)
        .push_back({evaluation.compile_seconds, evaluation.oracle_seconds, evaluation.correctness_seconds,
                    evaluation.timing_seconds, total});
  };
  kgrpo::bench::InParallel(arguments.threads, 0, firsts, work);
  kgrpo::bench::InParallel(arguments.threads, firsts, order.size(), work);
  std::printf("# route threads kernels count p50_s p95_s, then each stage's\n");
  Summarise(arguments, "first", first_seconds);
  Summarise(arguments, "later", later_seconds);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kgrpo::bench;
  Arguments arguments;
  CLI::App app("Measures the time from source to verdict without a GPU.", "sim_verdict");
  AddRoute(app, arguments.route);
  AddThreads(app, arguments.threads);
  AddSimKernels(app, arguments.problems, arguments.variants, arguments.folder);
  return RunCommand(app, argc, argv, [&] { Measure(arguments); });
}
