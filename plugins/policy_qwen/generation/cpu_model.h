// The model on a CPU for the scheduler: a cache per slot, prompts by the transformer's forward pass, decode steps row
// by row. Used by generation_engine.cc.
//
// A completion's bits depend on its prompt, seed, sampling and parameters only. Prompts are computed whole and by
// themselves, as libtorch's products may depend on what else they multiply; equal ones of a call are computed once. In
// a decode step every row is computed from its own values, by the same instructions in the same order however many rows
// there are (row_kernels.h). Values are rounded to the model's dtype where the operators of ops.h round them, so that
// log-probabilities stay close to those of a forward pass.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GENERATION_CPU_MODEL_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GENERATION_CPU_MODEL_H_

#include <cstdint>
#include <memory>

#include "policy_qwen/generation/generation_scheduler.h"
#include "policy_qwen/model/config.h"
#include "policy_qwen/model/parameters.h"
#include "policy_qwen/model/transformer.h"

namespace kgrpo::policy {

// One thread at a time. The scheduler's limits must say whole_prompts. All arguments are on the CPU and outlive the
// model.
std::unique_ptr<GenerationDevice> MakeCpuModel(const ModelConfig& config, const Weights& weights, RotaryTable& rotary,
                                               int32_t slots);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GENERATION_CPU_MODEL_H_
