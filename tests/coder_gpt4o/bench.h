// A coder over a scripted service. Used by the tests of this folder that need a whole coder.
#ifndef KGRPO_TESTS_CODER_GPT4O_BENCH_H
#define KGRPO_TESTS_CODER_GPT4O_BENCH_H

#include "asked.h"

#include <string>
#include <utility>
#include <vector>

namespace kgrpo::coder_gpt4o {

inline const nlohmann::json kPrices = {{"gpt-4o", {{"prompt", 2.5}, {"completion", 10}}}};

// AnswerOf costs 0.0045 US dollars.
struct Bench {
  explicit Bench(const nlohmann::json& changes = nlohmann::json::object(), Recordings recordings = {})
      : coder(OptionsWith(changes), Telling(service.service()), std::move(recordings),
              {[this](std::string_view message) { warnings.emplace_back(message); },
               [this](std::string_view name, double value) {
                 metrics.emplace_back(name, value);
                 if (on_metric) std::exchange(on_metric, nullptr)();
               }}) {}

  void Ask(Asked& asked, Answered& answered) { coder.Implement(asked.request(), answered.done()); }

  // Tells the test that a request has reached the service.
  Service Telling(Service told) {
    return {[this, send = std::move(told.send)](CompletionRequest request, std::function<void(Completion)> done) {
              send(std::move(request), std::move(done));
              if (on_send) on_send();
            },
            std::move(told.cancel), std::move(told.address)};
  }

  ScriptedService service;
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, double>> metrics;
  std::function<void()> on_metric;  // called once, at the next metric
  std::function<void()> on_send;
  Coder coder;
};

// Requests these suggestions, each with its own sample, and answers every request that reaches the service.
inline std::vector<Answered> Play(Bench& bench, const std::vector<std::string>& suggestions) {
  std::vector<Answered> answered(suggestions.size());
  for (size_t i = 0; i < suggestions.size(); ++i) {
    Asked asked(suggestions[i], i);
    bench.Ask(asked, answered[i]);
    while (!bench.service.calls.empty())
      bench.service.Answer(
          AnswerOf(Fenced(kKernelC + ("// " + suggestions[i]) + std::to_string(bench.service.sent) + "\n")));
  }
  return answered;
}

inline Completion Failed() {
  Completion completion;
  completion.outcome = Completion::Outcome::kFailed;
  completion.message = "no answer after 6 attempts";
  completion.attempts = 6;
  return completion;
}

}  // namespace kgrpo::coder_gpt4o

#endif
