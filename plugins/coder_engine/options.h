// The options of coder_engine: those of policy_qwen that a model needs to generate, how answers are sampled, and the
// prompt. Used by plugin.cc and coder.cc.
#pragma once

#include <kgrpo/policy.h>

#include <string_view>

#include "coder_shared/prompt.h"
#include "policy_qwen/policy.h"

namespace kgrpo::coder_engine {

struct CoderOptions {
  policy::PolicyOptions model;
  kgrpo_sampling sampling = {};
  coder_shared::PromptOptions prompt;
};

// JSON Schema, draft 7. Static.
std::string_view OptionsSchema();

// `json` satisfies the schema, defaults filled in. Throws KGRPO_ERROR_INVALID with every error of the prompt's
// templates, one a line.
CoderOptions ReadOptions(std::string_view json);

}  // namespace kgrpo::coder_engine
