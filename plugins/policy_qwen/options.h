// The options of policy_qwen as users write them: their schema, and how they become PolicyOptions. Used by
// plugin.cc and by coder_engine.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_OPTIONS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_OPTIONS_H_

#include <string_view>

#include "policy_qwen/policy.h"

namespace kgrpo::policy {

// JSON Schema, draft 7. Static.
std::string_view OptionsSchema();

// `json` satisfies the schema, defaults filled in or not.
PolicyOptions ParseOptions(std::string_view json);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_OPTIONS_H_
