#include "fake_judge.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/host.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

struct kgrpo_problem {
  std::string name, source;
  kgrpo_problem_info info{};
};
struct kgrpo_evaluator {
  kgrpo::Host host;
  double seconds;
};

namespace kgrpo::test {
namespace {

void Put(double seconds, const std::string& verdict, const std::string& diagnosis, kgrpo_evaluation_sink sink) {
  kgrpo_evaluation evaluation{};
  evaluation.struct_size = sizeof evaluation;
  evaluation.compiled = 1;
  evaluation.correct = verdict == "correct";
  evaluation.verdict = Str(verdict);
  if (evaluation.correct != 0) evaluation.seconds = evaluation.seconds_low = evaluation.seconds_high = seconds;
  evaluation.modelled = 1;
  evaluation.time_source = Str("a table");
  evaluation.diagnosis = Str(diagnosis);
  const kgrpo_metric metric = Measured("comments", 3);
  evaluation.metrics = &metric;
  evaluation.metric_count = 1;
  const kgrpo_remark remark = {sizeof remark, 2, Str("Group"), Str("label"), Str("text"), 0.5};
  const kgrpo_remark* const remarks[] = {&remark};
  evaluation.remarks = remarks;
  evaluation.remark_count = 1;
  sink.put(sink.context, &evaluation);
}

kgrpo_error* Open(kgrpo_evaluator*, kgrpo_str directory, kgrpo_problem** out) {
  return Guard([&] {
    const std::filesystem::path folder = Copy(directory);
    std::ifstream stream(folder / "reference.cu");
    auto problem = std::make_unique<kgrpo_problem>();
    problem->source.assign(std::istreambuf_iterator<char>(stream), {});
    if (!stream) throw Error(KGRPO_ERROR_INVALID, (folder / "reference.cu").string() + ": there is no such file");
    problem->name = folder.filename().string();
    problem->info.struct_size = sizeof(kgrpo_problem_info);
    problem->info.name = Str(problem->name);
    problem->info.title = Str("A title");
    problem->info.family = Str("family");
    problem->info.split = Str("train");
    problem->info.task = Str("the task");
    problem->info.signature = Str("void launch()");
    problem->info.source = Str(problem->source);
    *out = problem.release();
  });
}

void Hold(const kgrpo_evaluator& self) {
  ++judge().held;
  while (!judge().released && !self.host.Cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  --judge().held;
  if (judge().released) return;
  ++judge().cancelled;
  throw Error(KGRPO_ERROR_CANCELLED, "stopped");
}

}  // namespace

JudgeState& judge() {
  static JudgeState state;
  return state;
}

void ResetJudge() {
  judge().evaluations = judge().baselines = judge().held = judge().cancelled = 0;
  judge().released = false;
}

const kgrpo_evaluator_interface kFakeJudge = {
    sizeof(kgrpo_evaluator_interface),
    [] { return Str("{}"); },
    [](const kgrpo_host* host, kgrpo_str options, kgrpo_evaluator** out) {
      return Guard([&] {
        *out = new kgrpo_evaluator{Host(host), nlohmann::json::parse(View(options)).value("seconds", 1.0)};
      });
    },
    [](kgrpo_evaluator* self) { delete self; },
    Open,
    [](kgrpo_evaluator*, kgrpo_problem* problem) { delete problem; },
    [](const kgrpo_problem* problem) -> const kgrpo_problem_info* { return &problem->info; },
    [](kgrpo_evaluator* self, kgrpo_problem*, const kgrpo_evaluate_request* request, kgrpo_evaluation_sink sink) {
      return Guard([&] {
        const std::string asked =
            "seed " + std::to_string(request->seed) + (request->thorough != 0 ? ", thorough" : "");
        if (request->reference != 0) {
          ++judge().baselines;
          return Put(self->seconds, "correct", request->thorough != 0 ? asked : "the reference", sink);
        }
        const std::string source = Copy(request->source);
        ++judge().evaluations;
        if (source.find("hold") != std::string::npos) Hold(*self);
        if (source.find("break") != std::string::npos) throw Error(KGRPO_ERROR_UNAVAILABLE, "there is no compiler");
        const bool wrong = source.find("wrong") != std::string::npos;
        Put(self->seconds / 4, wrong ? "wrong" : "correct", asked, sink);
      });
    },
    [](const kgrpo_evaluator*) { return Str("a fake"); },
    nullptr};

}  // namespace kgrpo::test
