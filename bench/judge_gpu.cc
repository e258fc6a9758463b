// How well the judge on the GPU measures: each problem's reference kernel is judged as a candidate, so that the speedup
// is 1 but for what the timing gets wrong, and what a judgement costs is seen.
//
//   judge_gpu [--route fast|nvcc] REPETITIONS PROBLEM_DIRECTORY...
//
// Prints a CSV line a judgement: problem, verdict, speedup and its 95% interval, microseconds a call by the judge's
// clock and by events, rounds, dropped rounds, timed calls, sets, MHz, part of the measured bandwidth, seconds that
// compiling and all of the judgement took, and of those: loading, checking, timing; how much longer a first call took;
// and what was found where the verdict is not "right".
#include <kgrpo/sdk/error.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "evaluator_cuda/judge.h"
#include "evaluator_shared/random.h"

int main(int argc, char** argv) {
  using namespace kgrpo;
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::string route = "fast";
  if (arguments.size() > 1 && arguments[0] == "--route") {
    route = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: judge_gpu [--route fast|nvcc] REPETITIONS PROBLEM_DIRECTORY...\n");
    return 2;
  }
  try {
    const std::string cache = std::filesystem::temp_directory_path() / "kgrpo-judge-gpu";
    std::filesystem::create_directories(cache);
    evaluator_cuda::Judge::Options options;
    options.route = evaluator::CompileRouteFromName(route);
    options.timing.memory_bytes = uint64_t{2} << 30;
    const Clock::time_point begin = Clock::now();
    evaluator_cuda::Judge judge(options);
    std::printf("# %s\n# ready in %.2f s\n", judge.Describe().c_str(),
                std::chrono::duration<double>(Clock::now() - begin).count());
    std::printf(
        "problem,verdict,speedup,low,high,us,event_us,rounds,dropped,calls,sets,mhz,roofline_fraction,compile_s,"
        "judge_s,load_s,check_s,time_s,first_call_us,launch_us,baseline_launch_us,launches,gated\n");
    for (size_t i = 1; i < arguments.size(); ++i) {
      const evaluator_cuda::OpenProblem open(arguments[i], cache);
      for (int r = 0; r < std::atoi(arguments[0].c_str()); ++r) {
        const Clock::time_point start = Clock::now();
        const evaluator::Judgement judgement =
            judge.Evaluate(open, open.problem.reference_source, evaluator::SubKey(7, static_cast<uint64_t>(r)), false);
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        std::map<std::string, double> m(judgement.metrics.begin(), judgement.metrics.end());
        std::printf(
            "%s,%s,%.4f,%.4f,%.4f,%.3f,%.3f,%.0f,%.0f,%.0f,%.0f,%.0f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.2f,%.4f,%.4f,%.0f,"
            "%.0f\n",
            open.problem.name.c_str(), judgement.verdict.c_str(), m["speedup"], m["speedup_low"], m["speedup_high"],
            m["measured_seconds"] * 1e6, m["event_seconds"] * 1e6, m["timing_rounds"], m["timing_dropped_rounds"],
            m["timing_calls"], m["timing_sets"], m["clock_mhz"], m["roofline_fraction"], judgement.compile_seconds,
            seconds, m["judge_load_seconds"], m["judge_check_seconds"], m["judge_time_seconds"],
            m["first_call_seconds"] * 1e6, m["launch_seconds"] * 1e6, m["baseline_launch_seconds"] * 1e6,
            m["baseline_launches"], m["timing_gated"]);
        if (!judgement.correct) std::printf("# %s\n", judgement.diagnosis.c_str());
        std::fflush(stdout);
      }
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "judge_gpu: %s\n", error.what());
    return 1;
  }
  return 0;
}
