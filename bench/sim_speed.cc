// How fast kernels are interpreted: warp instructions a second, plain and with every check.
//
//   sim_speed [--threads 2] [--repeat 3] [--variants 4] [--folder build/test_data/judging/honest] PROBLEM_DIRECTORY...
//
// Each kernel is called once for every correctness size with the first seed's inputs, as an evaluation does; the best
// of --repeat is taken. Only the launches count (their setting up included), in CPU time of the thread that interprets,
// so that other work on the machine matters little; --threads kernels are measured at once, and a rate is that of so
// many threads together. Nothing is compiled or drawn meanwhile but for the call at hand. Prints a CSV line a kernel
// and mode: kernel, mode, threads, warp instructions, CPU seconds, millions of warp instructions a second; then for
// each mode the geometric mean over the kernels and the rate of their sum. Kernels that the interpreter refuses or
// finds at fault are named in comments.
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/cache_folder.h"
#include "common/command.h"
#include "common/parallel.h"
#include "interpreter/device_session.h"
#include "interpreter/tensors.h"
#include "interpreter/worker_pool.h"
#include "judge/compile/compiler.h"
#include "judge/compile/cuda_toolkit.h"
#include "judge/problem/cases.h"
#include "judge/sandbox/sandbox.h"
#include "sim_kernels.h"

namespace {

namespace evaluator = kgrpo::evaluator;
namespace simt = kgrpo::simt;
using kgrpo::bench::SimKernel;
using kgrpo::evaluator::Trouble;
using kgrpo::interpreter::CallRecord;
using kgrpo::interpreter::DeviceSession;
using kgrpo::interpreter::Tensors;
using kgrpo::interpreter::WorkerPool;

constexpr uint64_t kKey = 11;  // of the inputs

struct Arguments {
  size_t threads = 2, variants = 4;
  int repeat = 3;
  std::string folder, only;
  std::vector<std::string> problems;
};

struct Measured {
  uint64_t instructions = 0;
  double seconds = 0;
  Trouble trouble;
};

// The parts needed to run a kernel, without an evaluator around it.
class Bench {
 public:
  explicit Bench(const Arguments& arguments)
      : helpers_(evaluator::FindHelperDirectory()),
        toolkit_(evaluator::CudaToolkit::Find()),
        sandbox_(evaluator::SandboxMode::kAuto, helpers_, toolkit_.readable),
        device_(simt::Device::Load(helpers_ + "/devices/h100.yaml")),
        compiler_(toolkit_, sandbox_, helpers_,
                  {.workers = arguments.threads,
                   .library_directory = helpers_,
                   .cache_file = kgrpo::bench::CacheFolder("bench-sim") + "/compiled.sqlite"}),
        workers_(sandbox_, helpers_, arguments.threads, 600),
        repeat_(arguments.repeat) {}

  // Both modes; trouble in the first where the kernel does not compile or parse.
  std::map<simt::Mode, Measured> Measure(const SimKernel& kernel) {
    std::map<simt::Mode, Measured> measured;
    evaluator::CompileOutcome compiled = compiler_.Compile(kernel.open->problem, kernel.source, false);
    if (!compiled.Succeeded()) {
      measured[simt::Mode::kPlain].trouble = {compiled.verdict, compiled.diagnosis};
      return measured;
    }
    std::shared_ptr<const simt::Module> module;
    try {
      module = simt::Module::Parse(compiled.kernel.ptx);
    } catch (const kgrpo::Error& error) {
      measured[simt::Mode::kPlain].trouble = {"unsupported", error.what()};
      return measured;
    }
    DeviceSession session(module, compiled.kernel.usage, kernel.source, device_,
                          {.device_malloc = kernel.open->problem.allow_device_malloc});
    const std::unique_ptr<kgrpo::interpreter::Worker> worker = workers_.TakeAndReplace();
    if (const Trouble trouble = session.Load(*worker, compiled.kernel.object)) {
      measured[simt::Mode::kPlain].trouble = trouble;
      return measured;
    }
    for (const simt::Mode mode : {simt::Mode::kPlain, simt::Mode::kChecked}) {
      measured[mode] = Best(session, *worker, kernel, mode);
      if (measured[mode].trouble) break;
    }
    return measured;
  }

 private:
  Measured Best(DeviceSession& session, kgrpo::interpreter::Worker& worker, const SimKernel& kernel,
                simt::Mode mode) const {
    Measured best;
    const evaluator::Problem& problem = kernel.open->problem;
    for (const evaluator::CorrectnessCase& one : evaluator::CorrectnessCases(problem, kKey, 1)) {
      if (one.further) continue;
      if (one.alternative || one.aliased) continue;
      const std::vector<evaluator::Argument> arguments = evaluator::DrawArguments(problem, one);
      double seconds = std::numeric_limits<double>::infinity();
      uint64_t instructions = 0;
      for (int i = 0; i < repeat_; ++i) {
        const Tensors tensors(session.memory(), problem, one, arguments);
        CallRecord record;
        best.trouble = session.Call(worker, tensors.values(), mode, {}, &record);
        if (best.trouble) return best;
        seconds = std::min(seconds, record.interpreting_seconds);
        instructions = record.warp_instructions;
      }
      best.seconds += seconds;
      best.instructions += instructions;
    }
    return best;
  }

  const std::string helpers_;
  const evaluator::CudaToolkit toolkit_;
  const evaluator::Sandbox sandbox_;
  const simt::Device device_;
  evaluator::Compiler compiler_;
  WorkerPool workers_;
  const int repeat_;
};

const char* NameOf(simt::Mode mode) { return mode == simt::Mode::kPlain ? "plain" : "checked"; }

void Run(const Arguments& arguments) {
  const kgrpo::bench::SimKernels kernels(arguments.problems, arguments.variants, arguments.folder);
  std::vector<SimKernel> chosen;
  for (const SimKernel& kernel : kernels.kernels()) {
    if (kernel.name.find(arguments.only) != std::string::npos) chosen.push_back(kernel);
  }
  Bench bench(arguments);
  std::printf("kernel,mode,threads,warp_instructions,cpu_s,millions_per_s\n");
  std::mutex mutex;  // guards the output and what follows
  struct Total {
    double instructions = 0, seconds = 0, logarithms = 0;
    size_t kernels = 0;
  };
  std::map<simt::Mode, Total> totals;
  const auto threads = static_cast<double>(arguments.threads);
  kgrpo::bench::InParallel(arguments.threads, 0, chosen.size(), [&](uint64_t i) {
    const std::map<simt::Mode, Measured> measured = bench.Measure(chosen[i]);
    const std::lock_guard lock(mutex);
    const std::string name = kgrpo::bench::CsvName(chosen[i].name);
    for (const auto& [mode, one] : measured) {
      if (one.trouble) {
        std::printf("# %s, %s: %s\n", name.c_str(), NameOf(mode), one.trouble.code.c_str());
        continue;
      }
      const auto instructions = static_cast<double>(one.instructions);
      if (one.instructions == 0) continue;
      Total& total = totals[mode];
      total.instructions += instructions;
      total.seconds += one.seconds;
      total.logarithms += std::log(instructions / one.seconds);
      ++total.kernels;
      std::printf("%s,%s,%zu,%.0f,%.6f,%.1f\n", name.c_str(), NameOf(mode), arguments.threads, instructions,
                  one.seconds, threads * instructions / one.seconds / 1e6);
      std::fflush(stdout);
    }
  });
  std::printf("# mode threads kernels warp_instructions cpu_s geometric_mean_millions_per_s sum_millions_per_s\n");
  for (const auto& [mode, total] : totals) {
    std::printf("# %s %zu %zu %.0f %.3f %.1f %.1f\n", NameOf(mode), arguments.threads, total.kernels,
                total.instructions, total.seconds,
                threads * std::exp(total.logarithms / static_cast<double>(total.kernels)) / 1e6,
                threads * total.instructions / total.seconds / 1e6);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kgrpo::bench;
  Arguments arguments;
  CLI::App app("Measures the interpreter.", "sim_speed");
  AddThreads(app, arguments.threads);
  app.add_option("--repeat", arguments.repeat, "Calls of which the quickest counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--only", arguments.only, "Only kernels whose name contains this");
  AddSimKernels(app, arguments.problems, arguments.variants, arguments.folder);
  return RunCommand(app, argc, argv, [&] { Run(arguments); });
}
