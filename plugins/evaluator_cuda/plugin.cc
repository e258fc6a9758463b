// evaluator_cuda as a plugin: its options, and the devices behind the evaluators' common front.
#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/plugin.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "evaluator_cuda/device_errors.h"
#include "evaluator_cuda/device_evaluators.h"
#include "judge/front/front.h"

using kgrpo::Guard;
using kgrpo::View;
using kgrpo::evaluator_cuda::DeviceEvaluator;
using kgrpo::evaluator_cuda::DeviceEvaluators;

namespace {

constexpr char kOwnOptions[] = R"json(
    "device": {"type": ["integer", "array", "string"], "minimum": 0, "items": {"type": "integer", "minimum": 0}, "minItems": 1, "pattern": "^auto$", "default": "auto",
      "x-resume": true, "description": "Which GPU, as CUDA counts them; or a list of several of one kind, which judge side by side. auto: the first, and of several ranks on a machine each takes its own."},
    "compilers": {"type": "integer", "minimum": 1, "maximum": 256, "default": 4, "x-resume": true, "description": "Compile processes kept ready, and kernels interpreted at once; about the number of CPU cores."},
    "tvm_ffi": {"type": "string", "default": "",
      "description": "For candidates in TVM-FFI's form: the folder that holds include/ and lib/ of apache-tvm-ffi (site-packages/tvm_ffi); empty: KGRPO_TVM_FFI."},
    "pytorch": {"type": "boolean", "default": false,
      "description": "Time PyTorch's own computation too, where an imported problem has it (oracle/eager.pt): the baseline's metric pytorch_seconds. rules: kernelbench always does."},
    "relative_error": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5, "default": 0.02,
      "description": "Timing stops when the 95% interval of the speedup is this narrow (half its width, relative)."},
    "clear_share": {"type": "number", "minimum": 0, "maximum": 0.5, "default": 0.1,
      "description": "Timing also stops, for a speedup far from 1, when the interval is as narrow as this share of the speedup's natural logarithm: at 0.1, 4% for 1.5x, 7% for 2x. Thorough evaluations take 0."},
    "budget_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 0.3,
      "description": "Timing also stops when one kernel has used this much of the device's time."},
    "memory_mib": {"type": "integer", "minimum": 64, "default": 2048,
      "description": "Device memory for the inputs of timed calls, for the candidate and once more for the reference; more where a problem needs more, less where other programs use the device."},
    "checks": {"type": "string", "enum": ["interpreted", "device"], "default": "interpreted",
      "description": "interpreted: on CPU cores, beside the device, the correctness cases are interpreted with every check for races, bounds and uninitialised memory; device: only the device's own run."},
    "profile": {"type": "string", "enum": ["off", "correct", "right"], "default": "off", "x-profile": "correct",
      "description": "correct: every kernel that is correct is run once more under Nsight Compute, for the metrics profile.*; that takes some seconds each, ncu, and namespaces for the sandbox (or sandbox: off). right: the same, its earlier name."},
    "call_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 10, "x-resume": true, "description": "Limit for one batch of calls, wall clock: beyond it a kernel counts as endless."},
    "workers": {"type": "integer", "minimum": 1, "maximum": 32, "default": 8,
      "x-resume": true, "description": "Sandboxed processes with a CUDA context kept ready, at most: one more than evaluations wait for one. Each holds some 500 MB of device memory."},
)json";

std::vector<int> DevicesOf(const nlohmann::json& option, const kgrpo::Collective& ranks) {
  if (option.is_array()) return option.get<std::vector<int>>();
  if (option.is_number()) return {option.get<int>()};
  const int count = kgrpo::evaluator_cuda::DeviceCount();
  return {count == 0 ? 0 : static_cast<int>(ranks.local_rank()) % count};
}

kgrpo_str OptionsSchema() {
  static const std::string schema = kgrpo::evaluator::OptionsSchema("evaluator_cuda", kOwnOptions);
  return kgrpo::Str(schema);
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options_text, kgrpo_evaluator** out) {
  return Guard([&] {
    const nlohmann::json json = nlohmann::json::parse(View(options_text));
    const kgrpo::Host services(host);
    const std::vector<int> devices = DevicesOf(json.value("device", nlohmann::json("auto")), kgrpo::Collective(host));
    const kgrpo::evaluator::EvaluatorOptions common = kgrpo::evaluator::ReadEvaluatorOptions(json, services);
    const bool kernelbench = common.rules == kgrpo::evaluator::Rules::kKernelBench;
    DeviceEvaluator::Options options;
    kgrpo::evaluator::ReadBackendOptions(json, services, &options);
    if (kernelbench) options.seeds = kgrpo::evaluator::kKernelBenchTrials;
    options.compilers = json.value("compilers", size_t{4});
    options.tvm_ffi = json.value("tvm_ffi", "");
    options.timing.precision = {json.value("relative_error", 0.02), json.value("clear_share", 0.1)};
    options.timing.budget_seconds = json.value("budget_seconds", 0.3);
    options.timing.memory_bytes = json.value("memory_mib", uint64_t{2048}) << 20;
    options.interpret = !kernelbench && json.value("checks", "interpreted") == "interpreted";
    options.profile = json.value("profile", "off") != "off";
    options.pytorch = kernelbench || json.value("pytorch", false);
    options.call_seconds = json.value("call_seconds", 10.0);
    options.workers = json.value("workers", size_t{8});
    options.lock_device = [services](const std::string& device) -> std::shared_ptr<void> {
      auto lock = std::make_shared<kgrpo::DeviceLock>(services, device);
      services.ThrowIfCancelled();  // many may have waited
      return lock;
    };
    // Says so once, to the user who may wonder.
    const auto said = std::make_shared<std::once_flag>();
    options.on_wait_for_memory = [services, said](const std::string& why) {
      std::call_once(*said, [&] { services.Warn("waiting for device memory: " + why); });
    };
    auto backend = kgrpo::evaluator_cuda::WaitForMemory(
        kgrpo::evaluator_cuda::kMemoryPatienceSeconds,
        [&](const kgrpo::evaluator_cuda::OutOfMemory& error) {
          services.ThrowIfCancelled();
          options.on_wait_for_memory(error.what());
        },
        [&] { return std::make_unique<DeviceEvaluators>(options, devices); });
    *out = kgrpo::evaluator::MakeEvaluator(services, std::move(backend), common);
  });
}

const kgrpo_evaluator_interface kInterface = kgrpo::evaluator::MakeInterface(OptionsSchema, Create, /*counts=*/false);

}  // namespace

KGRPO_PLUGIN("evaluator_cuda", KGRPO_VERSION,
             "judges CUDA kernels on an NVIDIA GPU: checked and timed in sandboxed workers",
             {KGRPO_EVALUATOR_INTERFACE, &kInterface});
