// Generation: the model on its device and the scheduler that fills it. Made by the policy; used by hosted_policy.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GENERATION_ENGINE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GENERATION_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "policy_qwen/generation/generation_scheduler.h"
#include "policy_qwen/model/parameters.h"
#include "policy_qwen/model/transformer.h"

namespace kgrpo::policy {

// The model on the CPU, as its arguments are, which outlive it. One thread at a time. The scheduler's limits must have
// whole_prompts. In cpu_model.cc.
std::unique_ptr<GenerationDevice> MakeCpuModel(const ModelConfig& config, const Weights& weights, RotaryTable& rotary,
                                               int32_t slots);

// Throws KGRPO_ERROR_UNSUPPORTED if the engine cannot run a model of that shape on a GPU, or on that GPU.
void RequireEngine(const ModelConfig& config, at::Device device);

struct EngineOptions {
  int32_t max_sequences = 256;
  std::optional<int64_t> memory_mib;  // of the cache; unset: a quarter of what is free, on a CPU half of the memory
  int32_t rows_a_read = 0;            // of prompts, on a GPU; 0: as many as run at the card's speed
};

// One thread at a time.
class GenerationEngine {
 public:
  // On a GPU takes the cache's memory. The weights and the table are on `device` and keep their addresses; all outlive
  // the engine.
  GenerationEngine(const ModelConfig& config, const Weights& weights, RotaryTable& rotary, at::Device device,
                   const EngineOptions& options);

  GenerationScheduler& scheduler() { return *scheduler_; }
  // How prompts are computed on a GPU: the pinned algorithms, or why there are none. Empty on a CPU.
  const std::string& prompt_note() const { return prompt_note_; }

 private:
  void OpenOnGpu(const ModelConfig& config, Element type, const Weights& weights, RotaryTable& rotary,
                 at::Device device, const EngineOptions& options, SchedulerLimits& limits);

  std::string prompt_note_;
  std::unique_ptr<GenerationDevice> model_;
  std::optional<GenerationScheduler> scheduler_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GENERATION_ENGINE_H_
