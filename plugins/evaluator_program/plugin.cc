// evaluator_program as kgrpo.evaluator/1: a program in any language judges kernels.
#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/support/evaluation_json.h>

#include <nlohmann/json.hpp>
#include <string>

#include "program_shared/options.h"
#include "program_shared/pool.h"
#include "program_shared/wire.h"

struct kgrpo_evaluator {
  kgrpo::program::Pool pool;
};

struct kgrpo_problem {
  kgrpo::program::OpenedProblem opened;
};

namespace kgrpo::program {
namespace {

kgrpo_str Schema() {
  static const std::string schema = OptionsSchema("evaluator_program options", "[python3, my_evaluator.py]", 600);
  return Str(schema);
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_evaluator** out) {
  return Guard([&] { *out = new kgrpo_evaluator{Pool(Host(host), "evaluator", ReadOptions(View(options)))}; });
}

void Destroy(kgrpo_evaluator* self) { delete self; }

kgrpo_error* OpenProblem(kgrpo_evaluator* self, kgrpo_str directory, kgrpo_problem** out) {
  return Guard([&] {
    const std::string folder = Copy(directory);
    *out = new kgrpo_problem{OpenedProblem(folder, self->pool.Call("open_problem", {{"directory", folder}}))};
  });
}

void CloseProblem(kgrpo_evaluator*, kgrpo_problem* problem) { delete problem; }

const kgrpo_problem_info* ProblemInfo(const kgrpo_problem* problem) { return &problem->opened.info(); }

kgrpo_error* Evaluate(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                      kgrpo_evaluation_sink sink) {
  return Guard([&] {
    const nlohmann::ordered_json params = {
        {"directory", problem->opened.directory()}, {"source", View(request->source)},
        {"seed", WireSeed(request->seed)},          {"thorough", request->thorough != 0},
        {"show_hidden", request->show_hidden != 0}, {"reference", request->reference != 0}};
    sink.put(sink.context, EvaluationFromAnswer(self->pool.Call("evaluate", params)).ToC().c());
  });
}

kgrpo_str Describe(const kgrpo_evaluator* self) { return Str(self->pool.description()); }

constexpr kgrpo_evaluator_interface kInterface = {sizeof(kgrpo_evaluator_interface),
                                                  Schema,
                                                  Create,
                                                  Destroy,
                                                  OpenProblem,
                                                  CloseProblem,
                                                  ProblemInfo,
                                                  Evaluate,
                                                  Describe,
                                                  /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::program

KGRPO_PLUGIN("evaluator_program", KGRPO_VERSION, "an evaluator that is a program in any language, over JSON lines",
             {KGRPO_EVALUATOR_INTERFACE, &kgrpo::program::kInterface});
