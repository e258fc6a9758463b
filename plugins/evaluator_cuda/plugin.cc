// evaluator_cuda as a plugin: the kgrpo.evaluator/1 interface over DeviceEvaluator.
#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/host.h>
#include <kgrpo/sdk/plugin.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <kgrpo/support/sha256.h>
#include "evaluator_cuda/device_errors.h"
#include "evaluator_cuda/device_evaluators.h"
#include "evaluator_shared/evaluation_memory.h"
#include "evaluator_shared/interface.h"
#include "evaluator_shared/random.h"
#include "evaluator_shared/timing_sizes.h"

using kgrpo::Guard;
using kgrpo::Str;
using kgrpo::View;
using kgrpo::evaluator::EvaluationMemory;
using kgrpo::evaluator::KernelEvaluation;
using kgrpo::evaluator::Put;
using kgrpo::evaluator_cuda::DeviceEvaluator;
using kgrpo::evaluator_cuda::DeviceEvaluators;
using kgrpo::evaluator_cuda::OpenProblem;

// The ABI's opaque types are ours to define.
struct kgrpo_evaluator {
  kgrpo_evaluator(const kgrpo::Host& host, const DeviceEvaluator::Options& options, const std::vector<int>& devices,
                  uint64_t seed_option, bool cache, kgrpo::evaluator::Rules rules_option, bool pytorch_option)
      : cache_directory(host.CacheDirectory()),
        seed(seed_option),
        rules(rules_option),
        pytorch(pytorch_option),
        evaluators(options, devices),
        memory(cache ? cache_directory + "/evaluations.sqlite" : "",
               [host](const char* name, double value) { host.Metric(std::string("evaluator/") + name, value); }),
        description(evaluators.Describe()) {}
  const std::string cache_directory;
  const uint64_t seed;
  const kgrpo::evaluator::Rules rules;
  const bool pytorch;  // PyTorch is timed too
  DeviceEvaluators evaluators;
  EvaluationMemory memory;
  const std::string description;

  KernelEvaluation Evaluate(const OpenProblem& open, const std::string& source, uint64_t of_run, bool thorough,
                            bool show_hidden) {
    return kgrpo::evaluator::OverTimingSizes(1 + open.further.size(), [&](size_t i) {
      return EvaluateOne(i == 0 ? open : *open.further[i - 1], source, of_run, thorough, show_hidden);
    });
  }

  // Evaluates at one timing size. Inputs are a function of the evaluator's option `seed`, the run's seed and the
  // source, so that no two kernels get the same inputs.
  KernelEvaluation EvaluateOne(const OpenProblem& open, const std::string& source, uint64_t of_run, bool thorough,
                               bool show_hidden) {
    const std::string digest = kgrpo::Sha256OfParts(
        {std::to_string(seed), std::to_string(of_run), thorough ? "thorough" : "", open.problem.digest, source});
    const auto judged = [&] {
      return evaluators.Evaluate(open, source, kgrpo::evaluator::KeyFromText(digest), thorough, show_hidden);
    };
    return thorough || show_hidden ? judged()
                                   : memory.Get(kgrpo::Sha256OfParts({evaluators.Version(), digest}), judged);
  }
};

struct kgrpo_problem {
  kgrpo_problem(const std::string& directory, const std::string& cache_directory, kgrpo::evaluator::Rules rules)
      : open(directory, cache_directory, rules), description(open.problem) {}
  const OpenProblem open;
  const kgrpo::evaluator::ProblemDescription description;
  mutable std::mutex mutex;
  mutable std::optional<KernelEvaluation> baseline;  // guarded: measured once
};

namespace {

constexpr char kSchema[] = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "evaluator_cuda options",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "device": {"type": ["integer", "array", "string"], "minimum": 0, "items": {"type": "integer", "minimum": 0}, "minItems": 1, "pattern": "^auto$", "default": "auto",
      "x-resume": true, "description": "Which GPU, as CUDA counts them; or a list of several of one kind, which judge side by side. auto: the first, and of several ranks on a machine each takes its own."},
    "sandbox": {"type": "string", "enum": ["strict", "auto", "off"], "default": "auto",
      "description": "Isolation of compilers and candidates: strict refuses to run without namespaces and a system call filter, auto takes what the machine offers and says so, off is for debugging."},
    "compile": {"type": "string", "enum": ["fast", "nvcc"], "default": "fast",
      "description": "fast: NVRTC and g++, some 50 ms a kernel, falling back to nvcc, with the same machine code; nvcc: always nvcc, about a second, as a plain build. A thorough evaluation always takes nvcc."},
    "compilers": {"type": "integer", "minimum": 1, "maximum": 256, "default": 4, "x-resume": true, "description": "Compile processes kept ready, and kernels interpreted at once; about the number of CPU cores."},
    "cuda_home": {"type": "string", "default": "",
      "description": "The folder that holds bin/nvcc; empty: KGRPO_CUDA_HOME, CUDA_HOME, PATH and the usual places are searched."},
    "tvm_ffi": {"type": "string", "default": "",
      "description": "For candidates in TVM-FFI's form: the folder that holds include/ and lib/ of apache-tvm-ffi (site-packages/tvm_ffi); empty: KGRPO_TVM_FFI."},
    "rules": {"type": "string", "enum": ["ours", "kernelbench"], "default": "ours",
      "description": "kernelbench: judge as KernelBench does, for figures that compare with published ones: the timing size alone, its tolerance, none of our other checks (docs/kernelbench.md)."},
    "pytorch": {"type": "boolean", "default": false,
      "description": "Time PyTorch's own computation too, where an imported problem has it (oracle/eager.pt): the baseline's metric pytorch_seconds. rules: kernelbench always does."},
    "seeds": {"type": "integer", "minimum": 1, "maximum": 16, "default": 2, "description": "Secret inputs tried at each size."},
    "seed": {"type": "integer", "minimum": 0, "default": 0, "x-seed": true, "description": "Changes every secret input."},
    "relative_error": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5, "default": 0.02,
      "description": "Timing stops when the 95% interval of the speedup is this narrow (half its width, relative)."},
    "clear_share": {"type": "number", "minimum": 0, "maximum": 0.5, "default": 0.1,
      "description": "Timing also stops, for a speedup far from 1, when the interval is as narrow as this share of the speedup's natural logarithm: at 0.1, 4% for 1.5x, 7% for 2x. Thorough evaluations take 0."},
    "budget_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 0.3,
      "description": "Timing also stops when one kernel has used this much of the device's time."},
    "memory_mib": {"type": "integer", "minimum": 64, "default": 2048,
      "description": "Device memory for the inputs of timed calls, for the candidate and once more for the reference; more where a problem needs more, less where other programs use the device."},
    "cache": {"type": "boolean", "default": true,
      "x-resume": true, "description": "Keep evaluations on disk, by source, inputs, device and driver, for later runs, and 512 MiB of compiled kernels. Thorough evaluations are never kept."},
    "checks": {"type": "string", "enum": ["interpreted", "device"], "default": "interpreted",
      "description": "interpreted: on CPU cores, beside the device, the correctness cases are interpreted with every check for races, bounds and uninitialised memory; device: only the device's own run."},
    "profile": {"type": "string", "enum": ["off", "correct", "right"], "default": "off", "x-profile": "correct",
      "description": "correct: every kernel that is correct is run once more under Nsight Compute, for the metrics profile.*; that takes some seconds each, ncu, and namespaces for the sandbox (or sandbox: off). right: the same, its earlier name."},
    "compile_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 60, "x-resume": true, "description": "Limit for one compile, in seconds of processor time (ten times that of wall clock)."},
    "call_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 10, "x-resume": true, "description": "Limit for one batch of calls, wall clock: beyond it a kernel counts as endless."},
    "workers": {"type": "integer", "minimum": 1, "maximum": 32, "default": 8,
      "x-resume": true, "description": "Sandboxed processes with a CUDA context kept ready, at most: one more than evaluations wait for one. Each holds some 500 MB of device memory."}
  }
})json";

std::vector<int> DevicesOf(const nlohmann::json& option, const kgrpo::Collective& ranks) {
  if (option.is_array()) return option.get<std::vector<int>>();
  if (option.is_number()) return {option.get<int>()};
  const int count = kgrpo::evaluator_cuda::DeviceCount();
  return {count == 0 ? 0 : static_cast<int>(ranks.local_rank()) % count};
}

kgrpo_str OptionsSchema() {
  return {kSchema, sizeof kSchema - 1};
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options_text, kgrpo_evaluator** out) {
  return Guard([&] {
    const nlohmann::json json = nlohmann::json::parse(View(options_text));
    const kgrpo::Host services(host);
    kgrpo::evaluator::DeclareMetrics(services);
    DeviceEvaluator::Options options;
    const std::vector<int> devices = DevicesOf(json.value("device", nlohmann::json("auto")), kgrpo::Collective(host));
    options.sandbox = kgrpo::evaluator::SandboxModeFromName(json.value("sandbox", "auto"));
    options.route = kgrpo::evaluator::CompileRouteFromName(json.value("compile", "fast"));
    options.compilers = json.value("compilers", size_t{4});
    options.on_compile_fallback = [services](const std::string& why) {
      services.Warn(kgrpo::evaluator::FallbackNotice(why));
    };
    options.cuda_home = json.value("cuda_home", "");
    options.tvm_ffi = json.value("tvm_ffi", "");
    options.seeds = json.value("seeds", 2);
    options.timing.precision = {json.value("relative_error", 0.02), json.value("clear_share", 0.1)};
    options.timing.budget_seconds = json.value("budget_seconds", 0.3);
    options.timing.memory_bytes = json.value("memory_mib", uint64_t{2048}) << 20;
    options.interpret = json.value("checks", "interpreted") == "interpreted";
    options.profile = json.value("profile", "off") != "off";
    const kgrpo::evaluator::Rules rules = kgrpo::evaluator::RulesFromName(json.value("rules", "ours"));
    if (rules == kgrpo::evaluator::Rules::kKernelBench) {
      options.seeds = kgrpo::evaluator::kKernelBenchTrials;
      options.interpret = false;
    }
    options.compile_seconds = json.value("compile_seconds", 60.0);
    options.call_seconds = json.value("call_seconds", 10.0);
    options.workers = json.value("workers", size_t{8});
    options.cancelled = [services] { return services.Cancelled(); };
    options.lock_device = [services](const std::string& device) -> std::shared_ptr<void> {
      auto lock = std::make_shared<kgrpo::DeviceLock>(services, device);
      services.ThrowIfCancelled();  // many may have waited
      return lock;
    };
    const bool cache = json.value("cache", true);
    if (cache) options.compile_cache = services.CacheDirectory() + "/compiles.sqlite";
    const bool pytorch = rules == kgrpo::evaluator::Rules::kKernelBench || json.value("pytorch", false);
    // Says so once, to the user who may wonder.
    const auto said = std::make_shared<std::once_flag>();
    options.on_wait_for_memory = [services, said](const std::string& why) {
      std::call_once(*said, [&] { services.Warn("waiting for device memory: " + why); });
    };
    *out = kgrpo::evaluator_cuda::WaitForMemory(
        kgrpo::evaluator_cuda::kMemoryPatienceSeconds,
        [&](const kgrpo::evaluator_cuda::OutOfMemory& error) {
          services.ThrowIfCancelled();
          options.on_wait_for_memory(error.what());
        },
        [&] {
          return new kgrpo_evaluator(services, options, devices, json.value("seed", uint64_t{0}), cache, rules,
                                     pytorch);
        });
  });
}

void Destroy(kgrpo_evaluator* self) {
  delete self;
}

kgrpo_error* OpenOne(kgrpo_evaluator* self, kgrpo_str directory, kgrpo_problem** out) {
  return Guard([&] { *out = new kgrpo_problem(std::string(View(directory)), self->cache_directory, self->rules); });
}

void Close(kgrpo_evaluator*, kgrpo_problem* problem) {
  delete problem;
}

const kgrpo_problem_info* ProblemInfo(const kgrpo_problem* problem) {
  return &problem->description.info();
}

// Returns the reference kernel's evaluation, measured once for as long as the problem is open if it is correct. It is
// thorough, so the cache does not keep it. Only the problem's author sees why a reference fails, so the diagnosis names
// hidden sizes.
KernelEvaluation ReferenceOf(kgrpo_evaluator& self, const kgrpo_problem& problem) {
  const std::lock_guard<std::mutex> lock(problem.mutex);
  if (problem.baseline) return *problem.baseline;
  kgrpo::evaluator::RequireReference(problem.open.problem);
  KernelEvaluation evaluation = self.Evaluate(problem.open, problem.open.problem.reference_source, 0, true, true);
  if (!evaluation.correct) return evaluation;
  if (self.pytorch) self.evaluators.TimePytorch(problem.open, &evaluation);
  problem.baseline = evaluation;
  return evaluation;
}

KernelEvaluation BaselineOf(kgrpo_evaluator& self, const kgrpo_problem& problem) {
  KernelEvaluation evaluation = ReferenceOf(self, problem);
  kgrpo::evaluator::RequireCorrectReference(evaluation, problem.open.problem);
  return evaluation;
}

// Returns the evaluation with seconds = the baseline's seconds / speedup. The quotient of the two times is then the
// speedup measured side by side, whatever the device has done since the baseline was measured.
KernelEvaluation BesideBaseline(KernelEvaluation evaluation, double baseline_seconds) {
  for (const auto& [name, value] : evaluation.metrics) {
    if (name == "speedup") evaluation.seconds = baseline_seconds / value;
    if (name == "speedup_low") evaluation.seconds_high = baseline_seconds / value;
    if (name == "speedup_high") evaluation.seconds_low = baseline_seconds / value;
  }
  return evaluation;
}

kgrpo_error* Evaluate(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                      kgrpo_evaluation_sink sink) {
  return Guard([&] {
    const KernelEvaluation baseline = BaselineOf(*self, *problem);
    if (request->reference != 0) return Put(baseline, false, self->evaluators.device().name(), sink);
    KernelEvaluation evaluation = self->Evaluate(problem->open, std::string(View(request->source)), request->seed,
                                                 request->thorough != 0, request->show_hidden != 0);
    if (evaluation.correct) evaluation = BesideBaseline(std::move(evaluation), baseline.seconds);
    Put(evaluation, false, self->evaluators.device().name(), sink);
  });
}

kgrpo_str Describe(const kgrpo_evaluator* self) {
  return Str(self->description);
}

kgrpo_error* Report(const kgrpo_evaluator* self, const kgrpo_problem* problem, const kgrpo_report_request* request,
                    kgrpo_text_sink html) {
  return Guard([&] { kgrpo::evaluator::PutReport(problem->open.problem, self->description, *request, html); });
}

// Reports only on the reference kernel. Checks for kernels that pass without the work need an oracle and no device:
// evaluator_sim has them.
kgrpo_error* CheckProblem(kgrpo_evaluator* self, const kgrpo_problem* problem, kgrpo_problem_finding_sink sink) {
  return Guard([&] {
    const auto judge = [&](uint64_t seed) {
      return seed == 0 ? ReferenceOf(*self, *problem)
                       : self->Evaluate(problem->open, problem->open.problem.reference_source, seed, /*thorough=*/true,
                                        /*show_hidden=*/true);
    };
    kgrpo::evaluator::PutFindings(kgrpo::evaluator::FindOfReference(problem->open.problem, judge), sink);
  });
}

constexpr kgrpo_evaluator_tools kTools = {sizeof(kgrpo_evaluator_tools), Report, CheckProblem,
                                          /*explain_bound=*/nullptr};

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

KGRPO_PLUGIN("evaluator_cuda", KGRPO_VERSION,
             "judges CUDA kernels on an NVIDIA GPU: checked and timed in sandboxed workers",
             {KGRPO_EVALUATOR_INTERFACE, &kInterface});
