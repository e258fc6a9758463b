#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "calibrate/accuracy.h"
#include "calibrate/counted_kernel.h"
#include "calibrate/device_file.h"
#include "calibrate/fit.h"

namespace {

using namespace kgrpo::bench;
namespace simt = kgrpo::simt;

struct Arguments {
  std::string replay, device = "h100", problems = "problems", counts;
  std::vector<std::string> except;
  size_t sample = 24, threads = std::max(1u, std::thread::hardware_concurrency());
  double offset = 0;
  int folds = 10, rounds = 20;
};

void Run(const Arguments& arguments) {
  std::vector<CountedKernel> kernels = Load(arguments.counts);
  std::erase_if(kernels,[&](const auto& k){ return std::find(arguments.except.begin(),arguments.except.end(),k.problem)!=arguments.except.end();});
  const simt::Device start = simt::Device::Load(
      kgrpo::evaluator::FindHelperDirectory() + "/devices/" + arguments.device + ".yaml");
  std::vector<const CountedKernel*> all;
  for (const auto& k : kernels) all.push_back(&k);
  std::printf("before\n%s", Heading().c_str());
  std::printf("%s", Line("all", Compare(Predict({start, arguments.offset * 1e-6}, all))).c_str());
  Fitted fitted = Fit(start, arguments.offset * 1e-6, true, {}, all, arguments.rounds);
  std::printf("fit\n%s", Table(Predict(fitted, all)).c_str());
  for (const auto& p : FitParameters()) { simt::Device s = start; std::printf("%s %g -> %g\n", p.name.c_str(), p.Of(s), p.Of(fitted.device)); }
  std::printf("offset %g\n", fitted.offset);
  {
    std::ostringstream text;
    text << std::ifstream(kgrpo::evaluator::FindHelperDirectory() + "/devices/" + arguments.device + ".yaml").rdbuf();
    std::map<std::string, NewValue> values;
    for (const auto& p : FitParameters()) values[p.name] = {p.Of(fitted.device), "fitted"};
    std::ofstream(kgrpo::evaluator::FindHelperDirectory() + "/devices/fitted.yaml") << WithValues(text.str(), values);
  }
  if (arguments.folds > 1)
  std::printf("held out\n%s", Table(CrossValidate(start, arguments.offset * 1e-6, true, {}, kernels, arguments.folds, arguments.rounds)).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Fits the time model.");
  app.add_option("--counts", arguments.counts);
  app.add_option("--device", arguments.device);
  app.add_option("--except", arguments.except)->delimiter(',');
  app.add_option("--folds", arguments.folds);
  app.add_option("--rounds", arguments.rounds);
  app.add_option("--offset", arguments.offset);
  CLI11_PARSE(app, argc, argv);
  try {
    Run(arguments);
  } catch (const kgrpo::Error& error) {
    std::fprintf(stderr, "calibrate: %s\n", error.what());
    return 1;
  }
  return 0;
}
