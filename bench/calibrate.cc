// Fits a device of the time model to measurements and reports how well the fit predicts kernels of families that it has
// not seen.
//
//   calibrate --name h100 --csv FOLDER [--problems problems] [--sample 12] [--passes 1]   on a machine with the GPU
//   calibrate --name h100 --replay bench/results/h100_coder_offline_kernels.csv    from saved times, without a GPU
//       [--except attention,harmonic_sum] [--sample 24] [--counts FILE] [--offset 4.4] [--out FILE.yaml]
//
// On a GPU: microbenchmarks (some seconds) to FOLDER/micro.csv; then of each problem the reference and `sample` kernels
// of coder_offline, timed by evaluator_cuda, to FOLDER/kernels.csv, in the same form that --replay reads. A kernel that
// is in that file --passes times, or that was not correct, is not timed again: an interrupted run continues. --minutes
// limits the time. Then, in both modes: the kernels are interpreted and counted, the parameters that are not known from
// data sheets or microbenchmarks are fitted, the device's file is written to --out, and three tables are printed: with
// the file as it was, fitted to all kernels, and each family predicted by a fit that left it out.
// predicted by a fit that left it out.
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "calibrate/accuracy.h"
#include "calibrate/counted_kernel.h"
#include "calibrate/device_file.h"
#include "calibrate/fit.h"
#include "calibrate/known.h"
#include "common/cache_folder.h"
#include "common/command.h"
#ifdef KGRPO_WITH_GPU
#include "calibrate/measure.h"
#endif

namespace {

using namespace kgrpo::bench;
namespace simt = kgrpo::simt;

struct Arguments {
  std::string name = "h100", replay, folder, problems = "problems", counts, out, machine;
  std::vector<std::string> except;
  size_t sample = 12, passes = 1, threads = std::max(1u, std::thread::hardware_concurrency());
  double offset = 0, minutes = 8;
  int folds = 10, rounds = 20;
};

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw kgrpo::Error(KGRPO_ERROR_NOT_FOUND, path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  char text[20];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::vector<CountedKernel> CountKernels(const Arguments& arguments, const std::string& csv) {
  const std::set<std::string> except(arguments.except.begin(), arguments.except.end());
  if (!arguments.counts.empty() && std::filesystem::exists(arguments.counts)) {
    std::vector<CountedKernel> kernels = Load(arguments.counts);
    std::erase_if(kernels, [&](const CountedKernel& kernel) { return except.contains(kernel.problem); });
    return kernels;
  }
  std::vector<MeasuredKernel> measured = ReadMeasured(csv);
  std::erase_if(measured, [&](const MeasuredKernel& kernel) { return except.contains(kernel.problem); });
  KernelCounter counter(arguments.problems, arguments.name, CacheFolder("calibrate"), arguments.threads);
  std::vector<CountedKernel> kernels = counter.Count(Sample(measured, arguments.replay.empty() ? 0 : arguments.sample));
  if (!arguments.counts.empty()) Save(arguments.counts, kernels);
  return kernels;
}

// Lines of fields that were neither measured nor moved by the fit stay as they are.
void WriteDevice(const Arguments& arguments, const std::string& text, simt::Device start, const Fitted& fitted,
                 const std::map<std::string, NewValue>& known) {
  std::map<std::string, NewValue> values = known;
  for (const FitParameter& parameter : FitParameters()) {
    simt::Device device = fitted.device;
    if (parameter.Of(device) == parameter.Of(start)) continue;
    NewValue& value = values[parameter.name];
    value.source =
        (value.source.empty() ? "" : "measured and ") + ("fitted to kernels, " + Today() + ", ") + arguments.machine;
    value.value = parameter.Of(device);
  }
  std::ofstream file(arguments.out);
  file << WithValues(text, values);
  if (!file.flush()) throw kgrpo::Error(KGRPO_ERROR_INTERNAL, arguments.out + ": cannot be written");
  std::printf("wrote %s\n", arguments.out.c_str());
}

void Run(Arguments arguments) {
  if (arguments.replay.empty() == arguments.folder.empty())
    throw kgrpo::Error(KGRPO_ERROR_INVALID, "give either --csv FOLDER or --replay FILE");
  const std::string path = kgrpo::evaluator::FindHelperDirectory() + "/devices/" + arguments.name + ".yaml";
  const std::string text = ReadText(path);
  simt::Device start = simt::Device::Load(path);
  std::map<std::string, NewValue> known;  // by microbenchmarks
  std::string csv = arguments.replay;
  if (csv.empty()) {
#ifdef KGRPO_WITH_GPU
    std::filesystem::create_directories(arguments.folder);
    arguments.machine = CurrentDeviceName();
    const std::string micro = arguments.folder + "/micro.csv";
    if (!std::filesystem::exists(micro)) MeasureParts(micro);
    csv = arguments.folder + "/kernels.csv";
    MeasureKernels({arguments.problems, csv, arguments.sample, arguments.passes, arguments.threads, arguments.minutes});
    known = KnownFrom(ReadMicro(micro), start, "measured, " + Today() + ", " + arguments.machine);
#else
    throw kgrpo::Error(KGRPO_ERROR_UNAVAILABLE, "built without nvcc: only --replay works");
#endif
  } else if (const std::string micro = std::filesystem::path(csv).replace_filename("micro.csv");
             std::filesystem::exists(micro)) {
    known = KnownFrom(ReadMicro(micro), start, "measured, " + arguments.machine);
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    names.push_back(name);
    SetField(start, name, value.value);
    std::printf("%-28s %.4g  %s\n", name.c_str(), value.value, value.source.c_str());
  }
  const std::vector<CountedKernel> kernels = CountKernels(arguments, csv);
  if (kernels.empty()) throw kgrpo::Error(KGRPO_ERROR_INVALID, csv + ": no kernel that can be counted");
  std::vector<const CountedKernel*> all;
  for (const CountedKernel& kernel : kernels) all.push_back(&kernel);
  const bool fit_offset = !arguments.replay.empty();  // the evaluator's own times cover the calls alone
  const double offset = arguments.offset * 1e-6;
  std::printf("\n%s%s", Heading().c_str(),
              Line("file as it was", Compare(Predict({simt::Device::Load(path), offset}, all))).c_str());
  const Fitted fitted = Fit(start, offset, fit_offset, names, all, arguments.rounds);
  std::printf("\nfitted to all (offset %.2f us)\n%s", fitted.offset * 1e6, Table(Predict(fitted, all)).c_str());
  for (const FitParameter& parameter : FitParameters()) {
    simt::Device before = start, after = fitted.device;
    std::printf("%-28s %.4g -> %.4g\n", parameter.name.c_str(), parameter.Of(before), parameter.Of(after));
  }
  if (arguments.folds > 1) {
    const auto held_out = CrossValidate(start, offset, fit_offset, names, kernels, arguments.folds, arguments.rounds);
    std::printf("\nfamilies left out of the fit\n%s", Table(held_out).c_str());
  }
  if (!arguments.out.empty()) WriteDevice(arguments, text, start, fitted, known);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Fits a device of the time model to measurements.", "calibrate");
  app.add_option("--name", arguments.name, "The device's file to start from")->capture_default_str();
  app.add_option("--csv", arguments.folder, "Measure here, and keep the measurements in this folder");
  app.add_option("--replay", arguments.replay, "Fit to saved times: problem,schedule,verdict,microseconds");
  app.add_option("--machine", arguments.machine, "With --replay: what the file says where values come from");
  AddMeasuredKernels(app, arguments.problems, arguments.except, arguments.counts);
  app.add_option("--sample", arguments.sample, "Kernels of a problem; with --replay 0 for all")->capture_default_str();
  app.add_option("--passes", arguments.passes, "Measurements of each, with --csv; their median counts")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  AddThreads(app, arguments.threads);
  app.add_option("--offset", arguments.offset, "Microseconds that the measurement adds, to start from");
  app.add_option("--minutes", arguments.minutes, "No kernel is begun to be timed after that")->capture_default_str();
  app.add_option("--folds", arguments.folds, "Groups of families, left out one after the other")->capture_default_str();
  app.add_option("--rounds", arguments.rounds)->capture_default_str();
  app.add_option("--out", arguments.out, "The device's file to write");
  return RunCommand(app, argc, argv, [&] { Run(arguments); });
}
