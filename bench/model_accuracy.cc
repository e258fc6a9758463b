// Accuracy of the time model on kernels whose times a GPU measured.
//
//   model_accuracy bench/results/h100_coder_offline_kernels.csv --device h100 --sample 24 [--except
//   attention,harmonic_sum]
//       [--counts FILE] [--kernels] [--offset MICROSECONDS]
//
// The CSV's columns are problem, schedule, verdict, microseconds; each kernel is written again by coder_offline from
// its schedule and interpreted at the problem's timing size. With --counts what was counted is kept in FILE and taken
// from there the next time. --offset is what the measurement adds to each time (two events around a call: 4.4 us on an
// H100), and is taken off the measured ones. Prints a table by problem; with --kernels a CSV line a kernel with the
// terms.
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

#include "calibrate/accuracy.h"
#include "calibrate/counted_kernel.h"
#include "common/cache_folder.h"
#include "common/command.h"

namespace {

using namespace kgrpo::bench;
namespace simt = kgrpo::simt;

struct Arguments {
  std::string csv, device = "h100", problems = "problems", counts;
  std::vector<std::string> except;
  size_t sample = 24, threads = std::max(1u, std::thread::hardware_concurrency());
  double offset = 0;
  bool kernels = false;
};

void PrintKernels(const std::vector<CountedKernel>& kernels, const std::vector<Timed>& timed,
                  const simt::Device& device) {
  std::printf("problem,schedule,measured_us,predicted_us,launches,terms\n");
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::string terms;
    simt::L2Contents contents;
    for (size_t l = 0; l < kernels[i].counts.size(); ++l) {
      for (const simt::TimeTerm& term :
           simt::EstimateTime(kernels[i].counts[l], kernels[i].resources[l], device, &contents).terms) {
        char text[100];
        std::snprintf(text, sizeof text, " %s=%.2f", term.name.c_str(), term.seconds * 1e6);
        terms += text;
      }
      terms += ";";
    }
    std::printf("%s,%s,%.2f,%.2f,%zu,%s\n", timed[i].problem.c_str(), kernels[i].schedule.c_str(),
                timed[i].measured * 1e6, timed[i].predicted * 1e6, kernels[i].counts.size(), terms.c_str());
  }
}

void Run(const Arguments& arguments) {
  std::vector<CountedKernel> kernels;
  const std::set<std::string> except(arguments.except.begin(), arguments.except.end());
  if (!arguments.counts.empty() && std::filesystem::exists(arguments.counts)) {
    kernels = Load(arguments.counts);
    std::erase_if(kernels, [&](const CountedKernel& kernel) { return except.contains(kernel.problem); });
  } else {
    std::vector<MeasuredKernel> measured = ReadMeasured(arguments.csv);
    std::erase_if(measured, [&](const MeasuredKernel& kernel) {
      return except.contains(kernel.problem) ||
             !std::filesystem::exists(arguments.problems + "/" + kernel.problem + "/problem.yaml");
    });
    KernelCounter counter(arguments.problems, arguments.device, CacheFolder("model-accuracy"), arguments.threads);
    kernels = counter.Count(Sample(measured, arguments.sample));
    if (!arguments.counts.empty()) Save(arguments.counts, kernels);
  }
  const simt::Device device =
      simt::Device::Load(arguments.device.ends_with(".yaml")
                             ? arguments.device
                             : kgrpo::evaluator::FindHelperDirectory() + "/devices/" + arguments.device + ".yaml");
  std::vector<Timed> timed;
  for (const CountedKernel& kernel : kernels)
    timed.push_back({kernel.problem, kernel.measured - arguments.offset * 1e-6, kernel.Predict(device)});
  if (arguments.kernels) PrintKernels(kernels, timed, device);
  std::printf("%s", Table(timed).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Tries the time model on measured kernels.", "model_accuracy");
  app.add_option("csv", arguments.csv, "problem,schedule,verdict,microseconds")->required();
  app.add_option("--device", arguments.device, "Its name, or a file .yaml")->capture_default_str();
  AddMeasuredKernels(app, arguments.problems, arguments.except, arguments.counts);
  app.add_option("--sample", arguments.sample, "Kernels of a problem; 0 for all")->capture_default_str();
  AddThreads(app, arguments.threads);
  app.add_option("--offset", arguments.offset, "Microseconds that the measurement adds")->capture_default_str();
  app.add_flag("--kernels", arguments.kernels, "A line a kernel too");
  return RunCommand(app, argc, argv, [&] { Run(arguments); });
}
