// Checks that a run's prompts fit the policy's context, and that its completions can end. Used by loop/run_problems.cc.
#ifndef KGRPO_LOOP_CONTEXT_ROOM_H
#define KGRPO_LOOP_CONTEXT_ROOM_H

#include "config/pipeline.h"
#include "plugin/instances.h"
#include "prompt/state.h"

#include <span>
#include <string>

namespace kgrpo {

// Result for the longest first-round prompt. Later rounds have longer prompts where kernels grow.
struct ContextRoom {
  std::string mistake;  // there is no room for a completion, or no token that could end one: the run would end there
  std::string warning;  // there is less than max_new_tokens, or completions end in no other way
};
ContextRoom RoomInContext(const PipelineConfig& config, Policy& policy, std::span<const PromptState> first_rounds);

}  // namespace kgrpo
#endif
