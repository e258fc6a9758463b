// evaluator_sim as a plugin: its options, and the interpreter behind the evaluators' common front.
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/plugin.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "evaluator_sim/kernel_evaluator.h"
#include "judge/front/front.h"

using kgrpo::Guard;
using kgrpo::View;
using kgrpo::evaluator_sim::KernelEvaluator;

namespace {

constexpr char kOwnOptions[] = R"json(
    "device": {"type": "string", "enum": ["h100", "h200", "a100", "l4", "rtx4090"], "default": "h100", "description": "The GPU whose time is modelled (docs/time_model.md)."},
    "host_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 10,
      "x-resume": true, "description": "Limit for the host code of one call of the launch function: of its processor time, of that of its copies, and of ten times as much wall clock for code that waits."},
    "warp_instructions": {"type": "integer", "minimum": 1000, "default": 400000000,
      "description": "Limit for the kernels of one call of the launch function: beyond it the verdict is timeout, or not_timed at the timing size if all of its blocks must run."},
    "python": {"type": "string", "default": "",
      "x-resume": true, "description": "The Python that has Triton, for candidates in Triton (docs/judging.md); empty: python3 of the PATH."},
    "workers": {"type": "integer", "minimum": 1, "maximum": 256, "default": 2,
      "x-resume": true, "description": "Sandboxed processes kept ready, of each kind; about the number of CPU cores."},
)json";

kgrpo_str OptionsSchema() {
  static const std::string schema = kgrpo::evaluator::OptionsSchema("evaluator_sim", kOwnOptions);
  return kgrpo::Str(schema);
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options_text, kgrpo_evaluator** out) {
  return Guard([&] {
    const nlohmann::json json = nlohmann::json::parse(View(options_text));
    const kgrpo::Host services(host);
    const kgrpo::evaluator::EvaluatorOptions common = kgrpo::evaluator::ReadEvaluatorOptions(json, services);
    KernelEvaluator::Options options;
    kgrpo::evaluator::ReadBackendOptions(json, services, &options);
    options.seed = common.seed;
    options.device = json.value("device", "h100");
    options.timing_size_only = common.rules == kgrpo::evaluator::Rules::kKernelBench;
    options.host_seconds = json.value("host_seconds", 10.0);
    options.warp_instructions = json.value("warp_instructions", uint64_t{400'000'000});
    options.timing_warp_instructions = options.warp_instructions;
    options.python = json.value("python", "");
    options.concurrency = json.value("workers", size_t{2});
    *out = kgrpo::evaluator::MakeEvaluator(services, std::make_unique<KernelEvaluator>(options), common);
  });
}

const kgrpo_evaluator_interface kInterface = kgrpo::evaluator::MakeInterface(OptionsSchema, Create, /*counts=*/true);

}  // namespace

KGRPO_PLUGIN("evaluator_sim", KGRPO_VERSION,
             "judges CUDA kernels without a GPU: interprets them and models a GPU's time",
             {KGRPO_EVALUATOR_INTERFACE, &kInterface});
