// Generation on a GPU: the model there and the scheduler that fills it. Made by the policy with the option
// "generation": "engine"; used by completion_writer.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GENERATION_ENGINE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GENERATION_ENGINE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "policy_qwen/gpu_generation/generation_scheduler.h"
#include "policy_qwen/gpu_generation/gpu_model.h"
#include "policy_qwen/model/parameters.h"
#include "policy_qwen/model/transformer.h"

namespace kgrpo::policy {

// Returns device pointers to the model's tensors. `place` maps a tensor to its pointer: on a GPU, the tensor's own
// data.
GpuWeights PlacesOf(const Weights& weights, const RotaryAngles& angles,
                    const std::function<const void*(const at::Tensor&)>& place);

// Throws KGRPO_ERROR_UNSUPPORTED if the engine cannot run a model of that shape, or on that GPU.
void RequireEngine(const ModelConfig& config, at::Device device);

struct EngineOptions {
  int32_t max_sequences = 256;
  std::optional<int64_t> memory_mib;  // of the cache; unset: a quarter of what is free
  int32_t rows_a_read = 0;            // of prompts; 0: as many as run at the card's speed
};

// One thread at a time.
class GenerationEngine {
 public:
  // Takes the cache's memory. The weights are on `device`, a GPU, and keep their addresses; all outlive the engine.
  GenerationEngine(const ModelConfig& config, const Weights& weights, RotaryTable& rotary, at::Device device,
                   const EngineOptions& options);

  GenerationScheduler& scheduler() { return *scheduler_; }
  // How prompts are computed: the pinned algorithms, or why there are none.
  const std::string& prompt_note() const { return prompt_note_; }

 private:
  RotaryAngles angles_;  // of all positions
  std::string prompt_note_;
  std::optional<GpuModel> model_;
  std::optional<GenerationScheduler> scheduler_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GENERATION_ENGINE_H_
