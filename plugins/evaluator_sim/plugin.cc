// evaluator_sim as a plugin: the kgrpo.evaluator/1 interface over Evaluator.
#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/plugin.h>

#include <nlohmann/json.hpp>

#include "evaluator_shared/interface.h"
#include "evaluator_sim/evaluator.h"

using kgrpo::Guard;
using kgrpo::Str;
using kgrpo::View;
using kgrpo::evaluator::Put;
using kgrpo::evaluator_sim::Evaluator;
using kgrpo::evaluator_sim::OpenProblem;

// The ABI's opaque types are ours to define.
struct kgrpo_evaluator {
  kgrpo_evaluator(const kgrpo::Host& host, const Evaluator::Options& options)
      : evaluator(options,
                  [host](const char* name, double value) { host.Metric(std::string("evaluator/") + name, value); }),
        description(evaluator.kernel_evaluator().Describe()),
        time_source(evaluator.kernel_evaluator().TimeSource()) {}
  Evaluator evaluator;
  std::string description;
  std::string time_source;
};

struct kgrpo_problem {
  explicit kgrpo_problem(std::unique_ptr<OpenProblem> opened) : open(std::move(opened)), description(open->problem()) {}
  std::unique_ptr<OpenProblem> open;
  kgrpo::evaluator::ProblemDescription description;
};

namespace {

constexpr char kSchema[] = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "evaluator_sim options",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "sandbox": {"type": "string", "enum": ["strict", "auto", "off"], "default": "auto",
      "description": "Isolation of compilers and candidates: strict refuses to run without namespaces and a system call filter, auto takes what the machine offers and says so, off is for debugging."},
    "compile": {"type": "string", "enum": ["fast", "nvcc"], "default": "fast",
      "description": "fast: NVRTC and g++, some 50 ms a kernel, falling back to nvcc, with the same machine code; nvcc: always nvcc, about a second, as a plain build. A thorough evaluation always takes nvcc."},
    "cuda_home": {"type": "string", "default": "",
      "description": "The folder that holds bin/nvcc; empty: KGRPO_CUDA_HOME, CUDA_HOME, PATH and the usual places are searched."},
    "device": {"type": "string", "enum": ["h100", "h200", "a100", "l4", "rtx4090"], "default": "h100", "description": "The GPU whose time is modelled (docs/time_model.md)."},
    "seeds": {"type": "integer", "minimum": 1, "maximum": 16, "default": 2, "description": "Secret inputs tried at each size."},
    "seed": {"type": "integer", "minimum": 0, "default": 0, "x-seed": true, "description": "Changes every secret input."},
    "rules": {"type": "string", "enum": ["ours", "kernelbench"], "default": "ours",
      "description": "kernelbench: judge as KernelBench does, for figures that compare with published ones: the timing size alone, its tolerance, none of our other checks (docs/kernelbench.md)."},
    "sampled_blocks": {"type": "integer", "minimum": 4, "maximum": 4096, "default": 24,
      "description": "Blocks interpreted at the timing size, and up to eight times as many where the lanes of an atomic may go to different addresses; more cost time and move the modelled time by about a percent."},
    "cache": {"type": "boolean", "default": true, "x-resume": true, "description": "Keep evaluations, compiled kernels (512 MiB) and expected outputs at the timing size (4 GiB) on disk, by content, for later runs."},
    "compile_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 60, "x-resume": true, "description": "Limit for one compile, in seconds of processor time (ten times that of wall clock)."},
    "host_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 10,
      "x-resume": true, "description": "Limit for the host code of one call of the launch function, wall clock."},
    "warp_instructions": {"type": "integer", "minimum": 1000, "default": 400000000,
      "description": "Limit for the kernels of one call of the launch function: beyond it the verdict is timeout, or not_timed at the timing size if all of its blocks must run."},
    "workers": {"type": "integer", "minimum": 1, "maximum": 256, "default": 2,
      "x-resume": true, "description": "Sandboxed processes kept ready, of each kind; about the number of CPU cores."}
  }
})json";

kgrpo_str OptionsSchema() {
  return {kSchema, sizeof kSchema - 1};
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options_text, kgrpo_evaluator** out) {
  return Guard([&] {
    const nlohmann::json json = nlohmann::json::parse(View(options_text));
    Evaluator::Options options;
    options.kernel_evaluator.sandbox = kgrpo::evaluator::SandboxModeFromName(json.value("sandbox", "auto"));
    options.kernel_evaluator.route = kgrpo::evaluator::CompileRouteFromName(json.value("compile", "fast"));
    options.kernel_evaluator.cuda_home = json.value("cuda_home", "");
    options.kernel_evaluator.device = json.value("device", "h100");
    options.kernel_evaluator.seeds = json.value("seeds", 2);
    options.kernel_evaluator.sampled_blocks = json.value("sampled_blocks", 24u);
    options.kernel_evaluator.compile_seconds = json.value("compile_seconds", 60.0);
    options.kernel_evaluator.host_seconds = json.value("host_seconds", 10.0);
    options.kernel_evaluator.warp_instructions = json.value("warp_instructions", uint64_t{400'000'000});
    options.kernel_evaluator.timing_warp_instructions = options.kernel_evaluator.warp_instructions;
    options.kernel_evaluator.concurrency = json.value("workers", size_t{2});
    options.seed = json.value("seed", uint64_t{0});
    options.cache = json.value("cache", true);
    options.rules = kgrpo::evaluator::RulesFromName(json.value("rules", "ours"));
    options.kernel_evaluator.timing_size_only = options.rules == kgrpo::evaluator::Rules::kKernelBench;
    const kgrpo::Host services(host);
    kgrpo::evaluator::DeclareMetrics(services);
    options.kernel_evaluator.on_compile_fallback = [services](const std::string& why) {
      services.Warn(kgrpo::evaluator::FallbackNotice(why));
    };
    options.kernel_evaluator.cancelled = [services] { return services.Cancelled(); };
    options.cache_directory = services.CacheDirectory();
    if (options.cache) options.kernel_evaluator.compile_cache = options.cache_directory + "/compiles.sqlite";
    *out = new kgrpo_evaluator(services, options);
  });
}

void Destroy(kgrpo_evaluator* self) {
  delete self;
}

kgrpo_error* OpenOne(kgrpo_evaluator* self, kgrpo_str directory, kgrpo_problem** out) {
  return Guard([&] { *out = new kgrpo_problem(self->evaluator.Open(std::string(View(directory)))); });
}

void Close(kgrpo_evaluator*, kgrpo_problem* problem) {
  delete problem;
}

const kgrpo_problem_info* ProblemInfo(const kgrpo_problem* problem) {
  return &problem->description.info();
}

kgrpo_error* Evaluate(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                      kgrpo_evaluation_sink sink) {
  return Guard([&] {
    const Evaluator::Request asked = {
        .seed = request->seed, .thorough = request->thorough != 0, .show_hidden = request->show_hidden != 0};
    Put(request->reference != 0 ? self->evaluator.Baseline(*problem->open, asked)
                                : self->evaluator.Evaluate(*problem->open, std::string(View(request->source)), asked),
        true, self->time_source, sink);
  });
}

kgrpo_str Describe(const kgrpo_evaluator* self) {
  return Str(self->description);
}

kgrpo_error* Report(const kgrpo_evaluator* self, const kgrpo_problem* problem, const kgrpo_report_request* request,
                    kgrpo_text_sink html) {
  return Guard([&] { kgrpo::evaluator::PutReport(problem->open->problem(), self->description, *request, html); });
}

kgrpo_error* CheckProblem(kgrpo_evaluator* self, const kgrpo_problem* problem, kgrpo_problem_finding_sink sink) {
  return Guard([&] { kgrpo::evaluator::PutFindings(self->evaluator.Check(*problem->open), sink); });
}

kgrpo_error* ExplainBound(const kgrpo_evaluator*, const kgrpo_problem*, const kgrpo_evaluation* candidate,
                          kgrpo_text_sink text, kgrpo_text_sink json) {
  return Guard([&] { kgrpo::evaluator::PutBound(*candidate, text, json); });
}

constexpr kgrpo_evaluator_tools kTools = {sizeof(kgrpo_evaluator_tools), Report, CheckProblem, ExplainBound};

constexpr kgrpo_evaluator_interface kInterface = {sizeof(kgrpo_evaluator_interface),
                                                  OptionsSchema,
                                                  Create,
                                                  Destroy,
                                                  OpenOne,
                                                  Close,
                                                  ProblemInfo,
                                                  Evaluate,
                                                  Describe,
                                                  kgrpo::evaluator::ToolsAlone<&kTools>};

}  // namespace

KGRPO_PLUGIN("evaluator_sim", KGRPO_VERSION,
             "judges CUDA kernels without a GPU: interprets them and models a GPU's time",
             {KGRPO_EVALUATOR_INTERFACE, &kInterface});
