// judge_kernel: judges one kernel by hand through the evaluator's C++ interface, with wall-clock times of each
// evaluation.
//
//   judge_kernel PROBLEM_DIRECTORY [KERNEL.cu] [--nvcc] [--thorough] [--repeat N]
//
// Without a kernel it judges the problem's reference. Repetitions differ by a comment, so that nothing is cached.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "evaluator_sim/kernel_evaluator.h"
#include "judge/front/evaluator.h"

int main(int argc, char** argv) {
  using kgrpo::evaluator_sim::KernelEvaluator;
  try {
    KernelEvaluator::Options options;
    const auto cache = std::filesystem::temp_directory_path() / "kgrpo_judge_kernel";
    std::filesystem::create_directories(cache);
    std::string directory, kernel;
    bool thorough = false;
    int repeat = 1;
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--nvcc") {
        options.route = kgrpo::evaluator::CompileRoute::kNvcc;
      } else if (argument == "--thorough") {
        thorough = true;
      } else if (argument == "--repeat" && i + 1 < argc) {
        repeat = std::atoi(argv[++i]);
      } else if (directory.empty()) {
        directory = argument;
      } else {
        kernel = argument;
      }
    }
    if (directory.empty()) {
      std::fprintf(stderr, "usage: judge_kernel PROBLEM_DIRECTORY [KERNEL.cu] [--nvcc] [--thorough] [--repeat N]\n");
      return 2;
    }
    kgrpo::evaluator::Evaluator evaluator(std::make_unique<KernelEvaluator>(options),
                                          {.cache_directory = cache.string(), .cache = false});
    std::printf("%s\n", evaluator.backend().Describe().c_str());
    const auto problem = evaluator.Open(directory);
    std::string source = problem->problem().reference_source;
    if (!kernel.empty()) {
      std::ostringstream text;
      text << std::ifstream(kernel).rdbuf();
      source = text.str();
    }
    for (int i = 0; i < repeat; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const auto evaluation =
          evaluator.Evaluate(*problem, i == 0 ? source : source + "\n// " + std::to_string(i), {.thorough = thorough});
      const double milliseconds =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
      std::printf("%s: %s (%.1f ms, compile %.1f ms)\n  %s\n", problem->problem().name.c_str(),
                  evaluation.verdict.c_str(), milliseconds, 1e3 * evaluation.compile_seconds,
                  evaluation.diagnosis.c_str());
      if (i + 1 < repeat) continue;
      for (const auto& [name, value] : evaluation.metrics) std::printf("  %s %g\n", name.c_str(), value);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "judge_kernel: %s\n", error.what());
    return 1;
  }
}
