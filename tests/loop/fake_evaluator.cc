// The fake evaluator: each (problem, technique) has its speedup, and nothing is run.
#include "fake_table.h"
#include "fakes.h"

#include <kgrpo/sdk/error.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

struct kgrpo_problem {
  std::string name, title, family, task, source;
  kgrpo_str traits[2];
  kgrpo_problem_info info{};
};
struct kgrpo_evaluator {};

namespace kgrpo::fakes {
namespace {

kgrpo_error* OpenProblem(kgrpo_evaluator*, kgrpo_str directory, kgrpo_problem** out) {
  return Guard([&] {
    auto problem = std::make_unique<kgrpo_problem>();
    problem->name = std::filesystem::path(Copy(directory)).filename();
    if (problem->name.find("missing") != std::string::npos)
      throw Error(KGRPO_ERROR_NOT_FOUND, "no problem in " + Copy(directory));
    problem->title = "Problem " + problem->name;
    problem->family = problem->name.substr(0, problem->name.find('_'));
    problem->task = "Compute " + problem->name + " <fast> & \"right\".";
    problem->source = "// kernel of " + problem->name + "\n";
    problem->traits[0] = Str("streaming");
    problem->traits[1] = Str(problem->family);
    kgrpo_problem_info& info = problem->info;
    info.struct_size = sizeof(info);
    info.name = Str(problem->name);
    info.title = Str(problem->title);
    info.family = Str(problem->family);
    info.split = Str("train");
    info.task = Str(problem->task);
    info.signature = Str("void launch()");
    info.source = Str(problem->source);
    info.traits = problem->traits;
    info.trait_count = 2;
    *out = problem.release();
  });
}

// Each family has one technique that helps much, one that is wrong; "overflow" doesn't compile anywhere.
Evaluation Judge(const kgrpo_problem& problem, const std::string& source) {
  Evaluation evaluation;
  evaluation.compiled = evaluation.correct = true;
  evaluation.verdict = "correct";
  evaluation.modelled = true;
  evaluation.time_source = "table";
  evaluation.seconds = 1e-3;
  const size_t best = Hash(problem.family) % 5;
  for (size_t t = 0; t < kTechniques.size(); ++t) {
    if (source.find("// " + kTechniques[t]) == std::string::npos) continue;
    if (kTechniques[t] == "overflow") {
      evaluation.compiled = evaluation.correct = false;
      evaluation.verdict = "not_compiled";
    } else if (t == (best + 2) % 5 && evaluation.compiled) {
      evaluation.correct = false;
      evaluation.verdict = "wrong";
    } else {
      evaluation.seconds /= t == best ? 3.0 : 0.8 + 0.4 * Unit(Hash(problem.name + kTechniques[t]));
    }
  }
  if (!evaluation.correct) evaluation.seconds = 0;
  evaluation.seconds_low = evaluation.seconds_high = evaluation.seconds;
  evaluation.diagnosis = "bound by " + problem.family;
  evaluation.metrics = {{"registers", 32}};
  return evaluation;
}

void EvaluateReference(const kgrpo_problem& problem, kgrpo_evaluation_sink sink) {
  if (problem.name.find("unreferenced") != std::string::npos)
    throw Error(KGRPO_ERROR_INVALID, problem.name + " has no reference kernel");
  Evaluation baseline = Judge(problem, problem.source);
  if (problem.name.find("broken") != std::string::npos) {
    baseline.correct = false;
    baseline.verdict = "wrong";
  }
  sink.put(sink.context, baseline.ToC().c());
}

kgrpo_error* EvaluateSource(kgrpo_evaluator*, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                            kgrpo_evaluation_sink sink) {
  return Guard([&] {
    if (request->reference != 0) return EvaluateReference(*problem, sink);
    const std::string source = Copy(request->source);
    const int before = (request->thorough ? knobs().thorough : knobs().evaluations)++;
    if (!request->thorough && knobs().budget_after_evaluations > 0 && before >= knobs().budget_after_evaluations)
      throw Error(KGRPO_ERROR_BUDGET, "no evaluation is left");
    if (request->thorough && knobs().cancel_in_thorough) {
      knobs().cancelled = true;
      throw Error(KGRPO_ERROR_CANCELLED, "cancelled");
    }
    Delay(problem->name + source);
    const auto fails_every = static_cast<uint64_t>(knobs().evaluator_fails_every.load());
    const bool chosen = fails_every > 0 && Hash(problem->name + source) % fails_every == 0 &&
                        problem->name.find(knobs().evaluator_fails_for) != std::string::npos;
    if (request->thorough ? knobs().thorough_fails > 0 && knobs().thorough_fails-- > 0 : chosen)
      throw Error(static_cast<kgrpo_error_code>(knobs().fault_code.load()), "no server answers");
    Evaluation evaluation = Judge(*problem, source);
    if (request->thorough && knobs().thorough_refutes) {
      evaluation.correct = false;
      evaluation.verdict = "wrong";
      evaluation.seconds = evaluation.seconds_low = evaluation.seconds_high = 0;
    }
    const EvaluationView view = evaluation.ToC();
    sink.put(sink.context, view.c());
  });
}

}  // namespace

const kgrpo_evaluator_interface kEvaluator = {
    sizeof(kgrpo_evaluator_interface),
    Schema,
    [](const kgrpo_host*, kgrpo_str, kgrpo_evaluator** out) -> kgrpo_error* {
      return Guard([&] { *out = new kgrpo_evaluator; });
    },
    [](kgrpo_evaluator* self) { delete self; },
    OpenProblem,
    [](kgrpo_evaluator*, kgrpo_problem* problem) { delete problem; },
    [](const kgrpo_problem* problem) -> const kgrpo_problem_info* { return &problem->info; },
    EvaluateSource,
    [](const kgrpo_evaluator*) { return Str("a table of speedups,\nnothing is run"); },
    nullptr};

}  // namespace kgrpo::fakes
