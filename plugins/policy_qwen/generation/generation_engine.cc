#include "policy_qwen/generation/generation_engine.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "policy_qwen/device.h"
#include "policy_qwen/generation/gpu_model.h"
#include "policy_qwen/generation/prompt_ops.h"
#include "policy_qwen/gpu/gpu_library.h"

namespace kgrpo::policy {
namespace {

// Prompt rows of a step: large products run at the card's speed.
constexpr int32_t kRowsAReadWithPromptOps = 8192, kRowsAReadByPosition = 65536;

// Pages of the cache: as many as `unset` bytes or the option allow, and no more than all slots can use.
int32_t PagesOf(const EngineOptions& options, uint64_t unset, uint64_t page, const SchedulerLimits& limits) {
  const uint64_t wanted = options.memory_mib ? static_cast<uint64_t>(*options.memory_mib) << 20 : unset;
  const auto a_slot = static_cast<uint64_t>((limits.context_length + kPageSize - 1) / kPageSize);
  return static_cast<int32_t>(std::min(wanted / page, static_cast<uint64_t>(limits.slots) * a_slot));
}

}  // namespace

void RequireEngine(const ModelConfig& config, at::Device device) {
  GpuModel::CheckShape(config);
  const auto& kernels = OpenGpuTable<GpuKernels>();
  CheckCard("generation: engine", device, kernels.check_card(device.index()), "\"generation\": \"auto\"");
}

GenerationEngine::GenerationEngine(const ModelConfig& config, const Weights& weights, RotaryTable& rotary,
                                   at::Device device, const EngineOptions& options) {
  SchedulerLimits limits;
  limits.slots = options.max_sequences;
  limits.context_length = static_cast<int32_t>(config.context_length);
  const Element type = weights.embedding.scalar_type() == at::kBFloat16 ? Element::kBfloat16 : Element::kFloat32;
  if (device.is_cuda()) {
    OpenOnGpu(config, type, weights, rotary, device, options, limits);
  } else {
    limits.pages = PagesOf(options, MachineBytes() / 2, GpuModel::PageBytes(config, type), limits);
    limits.steps_between_checks = 1;
    limits.whole_prompts = true;
    model_ = MakeCpuModel(config, weights, rotary, limits.slots);
  }
  scheduler_.emplace(*model_, limits);
}

void GenerationEngine::OpenOnGpu(const ModelConfig& config, Element type, const Weights& weights, RotaryTable& rotary,
                                 at::Device device, const EngineOptions& options, SchedulerLimits& limits) {
  const auto& runtime = OpenGpuTable<GpuRuntime>();
  std::vector<int64_t> positions(static_cast<size_t>(config.context_length));
  std::iota(positions.begin(), positions.end(), 0);
  const RotaryAngles angles = rotary.At(IndexTensor(positions, device), config.context_length);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  PromptOpsChoice prompts;
  if (type == Element::kBfloat16) {
    WaitForDevice(device);  // the weights were written on other streams
    prompts = ChoosePromptOps(config, weights, stream);
  } else {
    prompts.note = "prompts position by position, as decoding: dtype is float32";
  }
  prompt_note_ = prompts.note;
  // By position, prompts of one read share their steps: read as many together as there are slots.
  limits.rows_a_read = prompts.ops ? kRowsAReadWithPromptOps : kRowsAReadByPosition;
  if (options.rows_a_read > 0) limits.rows_a_read = options.rows_a_read;
  uint64_t free = 0;
  CheckGpu("generation", runtime.free_bytes(device.index(), &free));
  const uint64_t page = GpuModel::PageBytes(config, type),
                 others = GpuModel::BufferBytes(config, type, limits, prompts.ops != nullptr);
  limits.pages = PagesOf(options, free / 4, page, limits);
  const uint64_t needed = limits.pages * page + others;
  if (limits.pages == 0 || needed > free) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "generation: engine needs " + std::to_string(std::max(needed, page + others) >> 20) + " MiB (cache " +
                    std::to_string(limits.pages * page >> 20) + " MiB, buffers for " + std::to_string(limits.slots) +
                    " sequences " + std::to_string(others >> 20) + " MiB), and " + std::to_string(free >> 20) +
                    " MiB of the GPU's memory are free; " +
                    (limits.pages == 0 ? "raise generation_memory_mib or lower max_sequences"
                                       : "lower generation_memory_mib or max_sequences"));
  }
  model_ = std::make_unique<GpuModel>(config, type, GpuStream{device.index(), stream.native_handle()}, weights, angles,
                                      limits, OpenGpuTable<GpuKernels>(), runtime, std::move(prompts.ops));
}

}  // namespace kgrpo::policy
