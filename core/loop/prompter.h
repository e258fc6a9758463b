// Prompts of rounds, as rollouts (loop/rollout.h) and searches (tools/optimize) send them to the policy, and the check
// that a run's prompts fit the policy's context and its completions can end (loop/run_problems.cc).
#ifndef KGRPO_LOOP_PROMPTER_H
#define KGRPO_LOOP_PROMPTER_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/pipeline.h"
#include "loop/trajectory.h"
#include "plugin/instances.h"
#include "prompt/state.h"
#include "prompt/template.h"

namespace kgrpo {

class Prompter {
 public:
  // `policy`: null if no prompt is encoded. Both outlive this. Throws if a template is wrong.
  Prompter(const PipelineConfig& config, const Policy* policy);

  // The prompt in that state; no system message if its template renders to nothing.
  std::vector<ChatMessage> Messages(const PromptState& state) const;

  // Returns the prompt's token ids, as the policy's chat template renders it. Needs a policy, whose errors it throws.
  std::vector<int32_t> Encode(const std::vector<ChatMessage>& messages) const;

  // Sets the round's number and kernels, the messages of the trajectory's next round and, if `encode`, their token ids,
  // without the rounds of the history that would exceed room(). `shown`: the trajectory that the prompt describes.
  // Throws an error of the policy. [one thread]
  void Begin(const Trajectory& trajectory, const Trajectory& shown, const MetricRegistry* metrics, bool encode,
             RoundRecord* round);

  // Tokens that a prompt may have: prompt.max_tokens, or the rest of the context beside a completion.
  size_t room() const { return room_; }

  // "3 of 12 prompts left out earlier rounds to have at most 4000 tokens", of the prompts that Begin encoded; empty if
  // none did.
  std::string Shortened() const;

 private:
  const PipelineConfig& config_;
  const Policy* policy_;
  const PromptTemplate system_, user_;
  size_t room_ = 0;
  size_t encoded_ = 0, shortened_ = 0, too_long_ = 0;
};

// Result for the longest first-round prompt. Later rounds have longer prompts where kernels grow.
struct ContextRoom {
  std::string mistake;  // there is no room for a completion, or no token that could end one: the run would end there
  std::string warning;  // there is less than max_new_tokens, or completions end in no other way
};
ContextRoom RoomInContext(const PipelineConfig& config, Policy& policy, std::span<const PromptState> first_rounds);

}  // namespace kgrpo
#endif
