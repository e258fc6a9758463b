// Cost of a call across the plugin ABI beyond the plugin's own work: of a plugin by the host, through the host's
// wrappers, and of the host by a plugin, through the tables that it gets. In a loaded library, as in a run.
//
//   build/bin/abi_bench --calls 2000000
#include <kgrpo/host.h>
#include <kgrpo/options.h>
#include <kgrpo/sdk/text.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/directories.h"
#include "base/services.h"
#include "plugin/instances.h"
#include "plugin/library.h"

namespace kgrpo {
namespace {

// Nanoseconds a call: the median of 9 rounds, and the least and most.
struct Cost {
  double median, least, most;
};

Cost Measure(int calls, const std::function<void(int)>& body) {
  body(calls / 10);  // warm
  std::vector<double> rounds;
  for (int round = 0; round < 9; ++round) {
    const auto begun = std::chrono::steady_clock::now();
    body(calls);
    rounds.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count() /
                     calls);
  }
  std::ranges::sort(rounds);
  return {rounds[4], rounds.front(), rounds.back()};
}

void Show(const char* what, const Cost& cost) {
  std::printf("%-66s %7.1f ns (%.1f to %.1f)\n", what, cost.median, cost.least, cost.most);
}

void Run(int calls) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.cache_root = directory.path() / "cache";
  HostServices services(std::move(options));
  const kgrpo_host* host = services.ForInstance("bench");

  const PluginLibrary library(KGRPO_BINARY_DIR "/lib/kgrpo/reward_speedup.so");
  const auto* api = library.Table<kgrpo_reward_interface>(Role::kReward);
  nlohmann::json defaults = nlohmann::json::object();
  const nlohmann::ordered_json schema = library.OptionsSchema(Role::kReward);
  for (const auto& [name, option] : schema.at("properties").items()) defaults[name] = option.at("default");
  const Reward reward(api, host, defaults);
  Evaluation evaluation;
  evaluation.compiled = evaluation.correct = true;
  evaluation.verdict = KGRPO_VERDICT_CORRECT;
  evaluation.seconds = evaluation.seconds_low = evaluation.seconds_high = 1e-3;
  evaluation.speedup = 1;
  const EvaluationView view = evaluation.ToC();
  kgrpo_reward_request request = {};
  request.struct_size = sizeof request;
  request.baseline = request.candidate = request.current = view.c();

  volatile double used = 0;
  const kgrpo_metric_sink ignore = {nullptr, [](void*, kgrpo_metric) {}};
  const Cost direct = Measure(calls, [&](int n) {
    for (int i = 0; i < n; ++i) {
      double score = 0;
      api->score(reward.raw(), &request, ignore, &score);
      used = score;
    }
  });
  Show("reward_speedup's score, its table called directly", direct);
  Show("the same noted as the call under way, as the host's wrappers do", Measure(calls, [&](int n) {
         const PluginName* plugin = reward.plugin();
         for (int i = 0; i < n; ++i) {
           const PluginCall call(plugin, "score");
           double score = 0;
           api->score(reward.raw(), &request, ignore, &score);
           used = score;
         }
       }));
  Show("Reward::Score, which copies the score's parts out", Measure(calls, [&](int n) {
         for (int i = 0; i < n; ++i) used = reward.Score(request).score;
       }));

  const auto* options_table = static_cast<const kgrpo_options_interface*>(
      host->get_interface(host->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE)));
  const auto* services_table =
      static_cast<const kgrpo_host_interface*>(host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE)));
  Show("host: cancelled", Measure(calls, [&](int n) {
         for (int i = 0; i < n; ++i) used = services_table->cancelled(host->context);
       }));
  const kgrpo_str json = KGRPO_LITERAL(R"({"alpha": 0.5, "cap": 8, "floor": -0.5, "name": "x"})");
  Show("host: options.number, of an object of four (parses it)", Measure(calls / 10, [&](int n) {
         for (int i = 0; i < n; ++i) {
           double value = 0;
           options_table->number(host->context, json, KGRPO_LITERAL("cap"), &value);
           used = value;
         }
       }));
  Show("host: add_metric, a point of a declared metric", Measure(calls / 10, [&](int n) {
         for (int i = 0; i < n; ++i) services.AddMetric("bench/value", i);
         services.TakeMetrics();
       }));
}

}  // namespace
}  // namespace kgrpo

int main(int argc, char** argv) {
  CLI::App app("Cost of a call across the plugin ABI");
  int calls = 2000000;
  app.add_option("--calls", calls)->capture_default_str()->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  kgrpo::Run(calls);
  return 0;
}
