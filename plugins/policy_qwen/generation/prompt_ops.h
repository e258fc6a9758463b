// Operators of prompt rows by NVIDIA's libraries: products by cuBLASLt with pinned algorithms, attention by the
// FlashAttention-2 that libtorch brings, bfloat16. They take the place of kernels.h's where there are hundreds of rows,
// and give other bits: a token of a prompt is always computed by these, a sampled token always by those.
//
// A row's bits depend on its own inputs only. A pinned algorithm sums each output in one order whatever the number of
// rows; attention goes through a row's keys in blocks that are counted from the first position. So prompts can be read
// whole or in chunks, alone or among others. Used by gpu_model.cc; made by generation_engine.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GENERATION_PROMPT_OPS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GENERATION_PROMPT_OPS_H_

#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <string>

#include "policy_qwen/generation/gpu_model.h"
#include "policy_qwen/model/config.h"

namespace kgrpo::policy {

struct PromptOpsChoice {
  std::unique_ptr<PromptOps> ops;  // null: prompts are read as decode rows
  std::string note;                // names the algorithms, or why there are none; for the log
};

// Chooses an algorithm for each product of the model, and checks with the first layer's weights that its bits do not
// depend on the number of rows. The operators queue their work on `stream`.
PromptOpsChoice ChoosePromptOps(const ModelConfig& config, const Weights& weights, c10::Stream stream);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GENERATION_PROMPT_OPS_H_
