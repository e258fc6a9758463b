// Accuracy of the evaluator on the GPU: each problem's reference kernel is judged as a candidate, so that the speedup
// differs from 1 only by the error of the timing. The cost of an evaluation is shown too.
//
//   evaluator_gpu [--route fast|nvcc] [--checks interpreted|device] [--others] REPETITIONS PROBLEM_DIRECTORY...
//
// --others judges every other .cu file of the folder too. Prints a CSV line an evaluation: problem (of another kernel
// also its file's name), verdict, speedup and its 95% interval, microseconds a call by the evaluator's clock and by
// events, rounds, dropped rounds, timed calls, sets, MHz, part of the measured bandwidth, seconds that compiling and
// all of the evaluation took, and of those: loading, checking, timing; how much longer a first call took; and what was
// found where the verdict is not "correct".
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "common/cache_folder.h"
#include "common/command.h"
#include "common/figures.h"
#include "evaluator_cuda/device_evaluator.h"
#include "judge/problem/random.h"

namespace {

using namespace kgrpo;
using bench::SecondsSince;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string route = "fast", checks = "interpreted";
  bool others = false;
  uint64_t key = 7;
  uint64_t repetitions = 1;
  std::vector<std::string> problems;
};

struct Kernel {
  std::string name, source;
};

// The reference, and where `others` is set the other kernels in the problem's folder, by name.
std::vector<Kernel> KernelsOf(const evaluator::Problem& problem, bool others) {
  std::vector<Kernel> kernels;
  for (const auto& file : std::filesystem::directory_iterator(problem.directory)) {
    if (!others || file.path().extension() != ".cu" || file.path().filename() == "reference.cu") continue;
    std::ostringstream source;
    source << std::ifstream(file.path()).rdbuf();
    kernels.push_back({problem.name + "/" + file.path().stem().string(), source.str()});
  }
  std::sort(kernels.begin(), kernels.end(), [](const Kernel& a, const Kernel& b) { return a.name < b.name; });
  kernels.insert(kernels.begin(), {problem.name, problem.reference_source});
  return kernels;
}

void Run(const Arguments& arguments) {
  const std::string cache = bench::CacheFolder("evaluator-gpu");
  evaluator_cuda::DeviceEvaluator::Options options;
  options.route = evaluator::CompileRouteFromName(arguments.route);
  options.timing.memory_bytes = uint64_t{2} << 30;
  options.interpret = arguments.checks == "interpreted";
  const Clock::time_point begin = Clock::now();
  evaluator_cuda::DeviceEvaluator evaluator(options);
  std::printf("# %s\n# ready in %.2f s\n", evaluator.Describe().c_str(), SecondsSince(begin));
  std::printf(
      "problem,verdict,speedup,low,high,us,event_us,rounds,dropped,calls,sets,mhz,roofline_fraction,compile_s,"
      "judge_s,load_s,check_s,time_s,first_call_us,launch_us,baseline_launch_us,launches,gated\n");
  for (const std::string& folder : arguments.problems) {
    const evaluator::OpenProblem open(folder, cache);
    for (const Kernel& kernel : KernelsOf(open.problem, arguments.others)) {
      for (uint64_t r = 0; r < arguments.repetitions; ++r) {
        const Clock::time_point start = Clock::now();
        const evaluator::KernelEvaluation evaluation =
            evaluator.Evaluate(open, kernel.source, evaluator::SubKey(arguments.key, r), false);
        const double seconds = SecondsSince(start);
        std::map<std::string, double> m(evaluation.metrics.begin(), evaluation.metrics.end());
        std::printf(
            "%s,%s,%.4f,%.4f,%.4f,%.3f,%.3f,%.0f,%.0f,%.0f,%.0f,%.0f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.2f,%.4f,%.4f,%.0f,"
            "%.0f\n",
            kernel.name.c_str(), evaluation.verdict.c_str(), m["speedup"], m["speedup_low"], m["speedup_high"],
            m["measured_seconds"] * 1e6, m["event_seconds"] * 1e6, m["timing_rounds"], m["timing_dropped_rounds"],
            m["timing_calls"], m["timing_sets"], m["clock_mhz"], m["roofline_fraction"], evaluation.compile_seconds,
            seconds, m["judge_load_seconds"], m["judge_check_seconds"], m["judge_time_seconds"],
            m["first_call_seconds"] * 1e6, m["launch_seconds"] * 1e6, m["baseline_launch_seconds"] * 1e6,
            m["baseline_launches"], m["timing_gated"]);
        if (!evaluation.correct) std::printf("# %s\n", evaluation.diagnosis.c_str());
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Judges the reference kernels of problems as candidates.", "evaluator_gpu");
  bench::AddRoute(app, arguments.route);
  bench::AddChecks(app, arguments.checks);
  app.add_flag("--others", arguments.others, "Every other .cu file in the problems' folders too");
  app.add_option("--key", arguments.key, "Of the inputs")->capture_default_str();
  app.add_option("repetitions", arguments.repetitions, "Evaluations of each")->required();
  bench::AddProblems(app, arguments.problems)->required();
  return bench::RunCommand(app, argc, argv, [&] { Run(arguments); });
}
