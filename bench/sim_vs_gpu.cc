// Compares the interpreter with a GPU: random kernels (tests/simt/generated) are compiled once, run on both, and every
// value is compared. Bit for bit, but any NaN equals any other; what hardware approximates must agree within the
// documented error.
//
//   sim_vs_gpu [--from N] [--count N] [--jobs N] [--no-device] [--kinds NAME,...] [--different FOLDER] [--all]
//
// Prints a CSV line for each kernel that is not equal (--all: for every kernel): number, kind, verdict, and the first
// difference. Verdicts: equal, within (the documented error), optimiser (the GPU agrees with the interpreter once ptxas
// translates the same PTX without optimisation, so that the difference is ptxas's; docs/interpreter.md has examples),
// different, refused (by the interpreter), finding (a check accused a kernel that is well-formed), unstable (checked
// and unchecked runs differ), unfinished, crash (of the interpreter), not_compiled, device_error. Then a table of
// verdicts by kind. The source of each kernel whose verdict is neither equal nor within is left in FOLDER (default:
// different). Kernels are told by their number alone: --from and --count resume or repeat. Exit code 1 where any kernel
// is neither equal, within nor the optimiser's.
//
// Worker processes compile and interpret, started before this one touches the GPU; this process has the GPU to itself.
#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/command.h"
#include "common/figures.h"
#include "judge/compile/cuda_toolkit.h"
#include "sim_vs_gpu/generated_unit.h"
#include "sim_vs_gpu/gpu_comparison.h"
#include "simt/generated/kernel_generator.h"

namespace kgrpo::bench {
namespace {

namespace fs = std::filesystem;

struct Options : ComparisonOptions {
  uint64_t from = 0, count = 10400;
  size_t jobs = std::max(1u, std::thread::hardware_concurrency());
};

constexpr size_t kMostWorkers = 256;

// Memory that the workers share with this process.
struct Shared {
  std::atomic<uint64_t> next_unit;
  std::array<std::atomic<uint64_t>, kMostWorkers> unit, kernel;  // at work, by worker: number + 1, 0 for none
};

class Workers {
 public:
  Workers(const Options& options, const evaluator::CudaToolkit& toolkit)
      : options_(options), toolkit_(toolkit), end_((options.from + options.count + kUnitKernels - 1) / kUnitKernels) {
    std::string pattern = (fs::temp_directory_path() / "sim_vs_gpu.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Error(KGRPO_ERROR_UNAVAILABLE, pattern + " cannot be made");
    folder_ = pattern;
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || pipe(pipe_.data()) != 0)
      throw Error(KGRPO_ERROR_UNAVAILABLE, "no shared memory or pipe");
    shared_ = new (memory) Shared{};
    shared_->next_unit = options.from / kUnitKernels;
    for (size_t w = 0; w < std::min(options.jobs, kMostWorkers); ++w) Start(w);
  }
  ~Workers() {
    for (const auto& [process, worker] : running_) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Hands every unit to `comparison`, as they come.
  void Run(Comparison& comparison) {
    while (!running_.empty() || Pending()) {
      uint64_t unit = 0;
      if (Pending() && read(pipe_[0], &unit, sizeof unit) == sizeof unit) {
        Take(unit, comparison);
        continue;
      }
      int status = 0;
      const pid_t ended = waitpid(-1, &status, WNOHANG);
      if (ended > 0) Ended(ended, status, comparison);
    }
  }

 private:
  bool Pending() const {
    pollfd descriptor{pipe_[0], POLLIN, 0};
    return poll(&descriptor, 1, 50) > 0;
  }
  std::string PathOf(uint64_t unit) const { return folder_ + "/unit" + std::to_string(unit); }

  void Start(size_t worker) {
    const pid_t process = fork();
    if (process < 0) throw Error(KGRPO_ERROR_UNAVAILABLE, "no process can be started");
    if (process == 0) Work(worker);
    running_[process] = worker;
  }

  [[noreturn]] void Work(size_t worker) {
    try {
      const NvrtcCompiler compiler(toolkit_.nvrtc, toolkit_.include_directories);
      for (uint64_t unit = shared_->next_unit++; unit < end_; unit = shared_->next_unit++) {
        shared_->unit[worker] = unit + 1;
        shared_->kernel[worker] = 0;
        const uint64_t first = std::max(options_.from, unit * kUnitKernels);
        const uint64_t last = std::min(options_.from + options_.count, (unit + 1) * kUnitKernels);
        GeneratedUnit made;
        try {
          made = MakeUnit(compiler, unit, first, last, [&](uint64_t number) { shared_->kernel[worker] = number + 1; });
        } catch (const Error& error) {
          for (uint64_t number = first; number < last; ++number)
            made.kernels.push_back({number, std::string("not_compiled: ") + error.what(), {}, {}});
        }
        made.Save(PathOf(unit));
        shared_->unit[worker] = 0;
        if (write(pipe_[1], &unit, sizeof unit) != sizeof unit) _exit(2);
      }
    } catch (const Error& error) {
      std::fprintf(stderr, "sim_vs_gpu: a worker: %s\n", error.what());
      _exit(2);
    }
    _exit(0);
  }

  void Take(uint64_t unit, Comparison& comparison) {
    comparison.Take(GeneratedUnit::Load(PathOf(unit)));
    fs::remove(PathOf(unit));
  }

  // A worker that crashed leaves the rest of its unit undone, and is replaced.
  void Ended(pid_t process, int status, Comparison& comparison) {
    const size_t worker = running_[process];
    running_.erase(process);
    if (status == 0) return;
    if (WIFEXITED(status)) throw Error(KGRPO_ERROR_UNAVAILABLE, "a worker ended; see what it said above");
    const uint64_t unit = shared_->unit[worker].exchange(0), kernel = shared_->kernel[worker];
    if (unit != 0) {
      const uint64_t number = kernel != 0 ? kernel - 1 : (unit - 1) * kUnitKernels;
      comparison.Verdict(generated::Generate(number), "crash",
                         "signal " + std::to_string(WTERMSIG(status)) + "; the other kernels of unit " +
                             std::to_string(unit - 1) + " are not compared");
    }
    Start(worker);
  }

  const Options& options_;
  const evaluator::CudaToolkit& toolkit_;
  const uint64_t end_;
  std::string folder_;
  Shared* shared_ = nullptr;
  std::array<int, 2> pipe_{};
  std::map<pid_t, size_t> running_;
};

}  // namespace
}  // namespace kgrpo::bench

int main(int argc, char** argv) {
  using namespace kgrpo;
  using namespace kgrpo::bench;
  Options options;
  CLI::App app("Compares what the interpreter computes with what a GPU does.", "sim_vs_gpu");
  app.add_option("--from", options.from, "Number of the first kernel")->capture_default_str();
  app.add_option("--count", options.count, "Kernels")->capture_default_str();
  app.add_option("--jobs", options.jobs)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("!--no-device", options.device, "Only compile and interpret");
  app.add_option("--kinds", options.kinds, "Those wanted, with commas between; else all");
  app.add_option("--different", options.different, "Folder for the sources that differ")->capture_default_str();
  app.add_flag("--all", options.all, "A line for every kernel");
  return RunCommand(app, argc, argv, [&] {
    const auto begin = std::chrono::steady_clock::now();
    const evaluator::CudaToolkit toolkit = evaluator::CudaToolkit::Find();
    toolkit.CheckNvrtc();
    Workers workers(options, toolkit);
    Comparison comparison(options, toolkit);
    workers.Run(comparison);
    return comparison.Finish(SecondsSince(begin));
  });
}
