// Cost of a request to a program beyond the program's own work: scores of a reward, one after the other, by a program
// that answers without reading them (this one, with --answer), and by a Python script of the kit.
//
//   build/bin/program_bench --requests 20000
#include <time.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/directories.h"
#include "base/services.h"
#include "program_shared/pool.h"
#include "program_shared/wire.h"

namespace kgrpo::program {
namespace {

// Answers any request with a score, by its id alone.
int AnswerAll() {
  for (std::string line; std::getline(std::cin, line);) {
    const size_t at = line.find("\"id\":") + 5;
    const std::string id = line.substr(at, line.find(',', at) - at);
    std::printf("{\"id\":%s,\"result\":%s}\n", id.c_str(),
                id == "0" ? R"({"protocol":1,"roles":["reward"]})" : R"({"score":1})");
    std::fflush(stdout);
  }
  return 0;
}

kgrpo_evaluation Evaluated(std::vector<kgrpo_metric>* metrics) {
  kgrpo_evaluation evaluation = {};
  evaluation.struct_size = sizeof evaluation;
  evaluation.compiled = evaluation.correct = 1;
  evaluation.verdict = KGRPO_LITERAL("correct");
  evaluation.seconds = evaluation.seconds_low = evaluation.seconds_high = 1e-3;
  evaluation.speedup = 1;
  evaluation.diagnosis = KGRPO_LITERAL("bound by DRAM: 71% of its bandwidth, 4 sectors a request where 1 would do");
  evaluation.metrics = metrics->data();
  evaluation.metric_count = metrics->size();
  return evaluation;
}

double CpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void Measure(const char* what, const Host& host, std::vector<std::string> command, int requests) {
  PoolOptions options;
  options.command = std::move(command);
  options.options = nlohmann::json::object();
  Pool pool(host, "reward", options);

  std::vector<std::string> names;
  for (int i = 0; i < 24; ++i) names.push_back("metric_number_" + std::to_string(i));
  std::vector<kgrpo_metric> metrics;
  for (const std::string& name : names) metrics.push_back(Measured(name, 1.0 / 3));
  const kgrpo_evaluation evaluation = Evaluated(&metrics);
  const kgrpo_evaluation* history[] = {&evaluation, &evaluation};
  kgrpo_reward_request request = {};
  request.struct_size = sizeof request;
  request.baseline = request.candidate = request.current = &evaluation;
  request.round = 2;
  request.rounds = 4;
  request.history = history;

  for (int i = 0; i < 500; ++i) pool.CallText("score", RewardParams(request));  // warm
  std::vector<double> seconds;
  const double cpu = CpuSeconds();
  for (int i = 0; i < requests; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    pool.CallText("score", RewardParams(request));
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  }
  const double used = (CpuSeconds() - cpu) / requests;
  std::ranges::sort(seconds);
  std::printf("%-34s p50 %.3f ms, p99 %.3f ms, host's CPU %.3f ms a request of %zu bytes\n", what,
              1e3 * seconds[seconds.size() / 2], 1e3 * seconds[seconds.size() * 99 / 100], 1e3 * used,
              RewardParams(request).size());
}

}  // namespace
}  // namespace kgrpo::program

int main(int argc, char** argv) {
  using namespace kgrpo;
  CLI::App app("Cost of a request to a program");
  int requests = 20000;
  bool answer = false;
  app.add_option("--requests", requests)->capture_default_str()->check(CLI::PositiveNumber);
  app.add_flag("--answer", answer, "Be the program");
  CLI11_PARSE(app, argc, argv);
  if (answer) return program::AnswerAll();

  TemporaryDirectory directory;
  HostOptions options;
  options.cache_root = directory.path() / "cache";
  HostServices services(std::move(options));
  const Host host(services.ForInstance("bench"));
  std::filesystem::copy_file(KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py", directory.path() / "kgrpo_plugin.py");
  const std::string script = (directory.path() / "one.py").string();
  std::ofstream(script) << "from kgrpo_plugin import reward, run\n@reward\ndef one(round):\n    return 1.0\nrun()\n";
  program::Measure("a program that answers at once", host,
                   {std::filesystem::read_symlink("/proc/self/exe").string(), "--answer"}, requests);
  program::Measure("a Python reward that returns 1.0", host, {"python3", script}, requests);
  return 0;
}
