#include "judge/front/front.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "judge/report/bound.h"
#include "judge/report/declared_metrics.h"
#include "judge/report/kernel_report.h"
#include "judge/report/remarks.h"

// The ABI's opaque types are ours to define.
struct kgrpo_evaluator {
  kgrpo_evaluator(const kgrpo::Host& host, std::unique_ptr<kgrpo::evaluator::Backend> backend,
                  const kgrpo::evaluator::EvaluatorOptions& options)
      : evaluator(std::move(backend), options,
                  [host](const char* name, double value) { host.Metric(std::string("evaluator/") + name, value); }),
        description(evaluator.backend().Describe()),
        time_source(evaluator.backend().TimeSource()) {}
  kgrpo::evaluator::Evaluator evaluator;
  const std::string description, time_source;
};

struct kgrpo_problem {
  explicit kgrpo_problem(std::unique_ptr<const kgrpo::evaluator::OpenProblems> opened)
      : open(std::move(opened)), task(problem().TaskText()), signature(problem().Signature()) {
    for (const std::string& trait : problem().traits) traits.push_back(kgrpo::Str(trait));
    for (const std::string& flag : problem().flags) flags.push_back(kgrpo::Str(flag));
    using kgrpo::Str;
    info = {sizeof info,          Str(problem().name), Str(problem().title),   Str(problem().family),
            Str(problem().split), Str(task),           Str(signature),         Str(problem().reference_source),
            traits.data(),        traits.size(),       Str(problem().refused), flags.data(),
            flags.size()};
  }
  const kgrpo::evaluator::Problem& problem() const { return open->problem(); }

  const std::unique_ptr<const kgrpo::evaluator::OpenProblems> open;
  const std::string task, signature;
  std::vector<kgrpo_str> traits, flags;
  kgrpo_problem_info info{};
};

namespace kgrpo::evaluator {
namespace {

constexpr char kSchema[] = R"json(
    "sandbox": {"type": "string", "enum": ["strict", "auto", "off"], "default": "auto",
      "description": "Isolation of compilers and candidates: strict refuses to run without namespaces and a system call filter, auto takes what the machine offers and says so, off is for debugging."},
    "compile": {"type": "string", "enum": ["fast", "nvcc"], "default": "fast",
      "description": "fast: NVRTC and g++, some 50 ms a kernel, falling back to nvcc, with the same machine code; nvcc: always nvcc, about a second, as a plain build. A thorough evaluation always takes nvcc."},
    "rules": {"type": "string", "enum": ["ours", "kernelbench"], "default": "ours",
      "description": "kernelbench: judge as KernelBench does, for figures that compare with published ones: the timing size alone, its tolerance, none of our other checks (docs/kernelbench.md)."},
    "seeds": {"type": "integer", "minimum": 1, "maximum": 16, "default": 2, "description": "Secret inputs tried at each size."},
    "seed": {"type": "integer", "minimum": 0, "default": 0, "x-seed": true, "description": "Changes every secret input."},
    "cache": {"type": "boolean", "default": true,
      "x-resume": true, "description": "Keep evaluations and 512 MiB of compiled kernels on disk, by content, for later runs; evaluator_sim also 4 GiB of expected outputs at timing sizes. Thorough evaluations on a GPU are never kept."},
    "compile_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 60, "x-resume": true, "description": "Limit for one compile, in seconds of processor time (ten times that of wall clock)."}
  },
  "x-removed": {
    "cuda_home": {"const": "", "description": "the variable KGRPO_CUDA_HOME names the toolkit, for builds and evaluations alike"},
    "sampled_blocks": {"const": 24, "description": "more blocks moved modelled times by about a percent"}
  }
})json";

// Hands the evaluation and remarks on it to the caller's sink. The metrics "speedup", "speedup_low" and "speedup_high"
// of an evaluator that times kernel and reference side by side become the evaluation's.
void Put(const KernelEvaluation& found, const kgrpo_evaluator& self, const kgrpo_evaluation_sink& sink) {
  Evaluation evaluation;
  evaluation.compiled = found.compiled;
  evaluation.correct = found.correct;
  evaluation.verdict = found.verdict;
  evaluation.seconds = found.seconds;
  evaluation.seconds_low = found.seconds_low;
  evaluation.seconds_high = found.seconds_high;
  evaluation.modelled = self.evaluator.backend().modelled();
  evaluation.time_source = self.time_source;
  evaluation.diagnosis = found.diagnosis;
  for (const auto& [name, value] : found.metrics) {
    if (name == "speedup")
      evaluation.speedup = value;
    else if (name == "speedup_low")
      evaluation.speedup_low = value;
    else if (name == "speedup_high")
      evaluation.speedup_high = value;
    else
      evaluation.metrics.push_back({name, value});
  }
  evaluation.remarks = RemarksOf(evaluation.metrics);
  sink.put(sink.context, evaluation.ToC().c());
}

void Destroy(kgrpo_evaluator* self) { delete self; }

kgrpo_error* OpenOne(kgrpo_evaluator* self, kgrpo_str directory, kgrpo_problem** out) {
  return Guard([&] { *out = new kgrpo_problem(self->evaluator.Open(std::string(View(directory)))); });
}

void Close(kgrpo_evaluator*, kgrpo_problem* problem) { delete problem; }

const kgrpo_problem_info* ProblemInfo(const kgrpo_problem* problem) { return &problem->info; }

kgrpo_error* Evaluate(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                      kgrpo_evaluation_sink sink) {
  return Guard([&] {
    const Evaluator::Request asked = {
        .seed = request->seed, .thorough = request->thorough != 0, .show_hidden = request->show_hidden != 0};
    Put(request->reference != 0 ? self->evaluator.Baseline(*problem->open, asked)
                                : self->evaluator.Evaluate(*problem->open, std::string(View(request->source)), asked),
        *self, sink);
  });
}

kgrpo_str Describe(const kgrpo_evaluator* self) { return Str(self->description); }

kgrpo_error* Report(const kgrpo_evaluator* self, const kgrpo_problem* problem, const kgrpo_report_request* request,
                    kgrpo_text_sink html) {
  return Guard([&] {
    const std::string page = KernelReportHtml({problem->problem().name, Copy(request->source_name),
                                               Copy(request->source), Evaluation::FromC(*request->candidate),
                                               Evaluation::FromC(*request->baseline), self->description});
    html.put(html.context, Str(page));
  });
}

kgrpo_error* CheckProblem(kgrpo_evaluator* self, const kgrpo_problem* problem, kgrpo_problem_finding_sink sink) {
  return Guard([&] {
    for (const ProblemFinding& finding : self->evaluator.Check(*problem->open)) {
      const kgrpo_problem_finding c = {sizeof c, Str(finding.code), Str(finding.sentence), Str(finding.advice)};
      sink.put(sink.context, &c);
    }
  });
}

kgrpo_error* ExplainBound(const kgrpo_evaluator*, const kgrpo_problem*, const kgrpo_evaluation* candidate,
                          kgrpo_text_sink text, kgrpo_text_sink json) {
  return Guard([&] {
    const std::optional<Bound> bound = BoundOf(Evaluation::FromC(*candidate));
    if (!bound) return;
    const std::string lines = bound->ToText(), object = bound->ToJson().dump();
    text.put(text.context, Str(lines));
    json.put(json.context, Str(object));
  });
}

template <bool kCounts>
const void* Extension(const kgrpo_evaluator*, kgrpo_str id) {
  static constexpr kgrpo_evaluator_tools kTools = {sizeof(kgrpo_evaluator_tools), Report, CheckProblem,
                                                   kCounts ? ExplainBound : nullptr};
  return View(id) == KGRPO_EVALUATOR_TOOLS_INTERFACE ? &kTools : nullptr;
}

}  // namespace

std::string OptionsSchema(const std::string& plugin, const std::string& own) {
  return R"json({"$schema": "http://json-schema.org/draft-07/schema#", "title": ")json" + plugin +
         R"json( options", "type": "object", "additionalProperties": false, "properties": {)json" + own + kSchema;
}

EvaluatorOptions ReadEvaluatorOptions(const nlohmann::json& json, const Host& host) {
  return {.cache_directory = host.CacheDirectory(),
          .cache = json.value("cache", true),
          .seed = json.value("seed", uint64_t{0}),
          .rules = RulesFromName(json.value("rules", "ours"))};
}

void ReadBackendOptions(const nlohmann::json& json, const Host& host, BackendOptions* options) {
  options->sandbox = SandboxModeFromName(json.value("sandbox", "auto"));
  options->route = CompileRouteFromName(json.value("compile", "fast"));
  options->seeds = json.value("seeds", 2);
  options->compile_seconds = json.value("compile_seconds", 60.0);
  if (json.value("cache", true)) options->compile_cache = host.CacheDirectory() + "/compiles.sqlite";
  options->on_compile_fallback = [host](const std::string& why) { host.Warn(FallbackNotice(why)); };
  options->cancelled = [host] { return host.Cancelled(); };
}

kgrpo_evaluator* MakeEvaluator(const Host& host, std::unique_ptr<Backend> backend, const EvaluatorOptions& options) {
  for (const MetricDeclaration& metric : DeclaredMetrics()) host.Declare(metric);
  return new kgrpo_evaluator(host, std::move(backend), options);
}

kgrpo_evaluator_interface MakeInterface(kgrpo_str (*options_schema)(void),
                                        decltype(kgrpo_evaluator_interface::create) create, bool counts) {
  return {sizeof(kgrpo_evaluator_interface),
          options_schema,
          create,
          Destroy,
          OpenOne,
          Close,
          ProblemInfo,
          Evaluate,
          Describe,
          counts ? Extension<true> : Extension<false>};
}

}  // namespace kgrpo::evaluator
