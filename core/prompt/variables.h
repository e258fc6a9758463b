// The variables of the policy's prompts. Used by prompt/template.cc.
#ifndef KGRPO_PROMPT_VARIABLES_H
#define KGRPO_PROMPT_VARIABLES_H

#include <kgrpo/support/template_check.h>

namespace kgrpo {

// The root: a record of all top-level variables.
const Variable& PromptVariables();

}  // namespace kgrpo
#endif
