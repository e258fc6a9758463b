#include "loop/prompter.h"

#include <algorithm>
#include <utility>

namespace kgrpo {

Prompter::Prompter(const PipelineConfig& config, const Policy* policy)
    : config_(config),
      policy_(policy),
      system_(config.prompt.system, "prompt.system"),
      user_(config.prompt.user, "prompt.user"),
      room_(config.prompt.max_tokens) {
  if (room_ > 0 || policy == nullptr) return;
  const size_t context = policy->info().context_length, completion = config.loop.sampling.max_new_tokens;
  room_ = context > completion ? context - completion : context;
}

std::vector<ChatMessage> Prompter::Messages(const PromptState& state) const {
  std::vector<ChatMessage> messages;
  std::string text = system_.Render(state);
  if (!text.empty()) messages.push_back({"system", std::move(text)});
  messages.push_back({"user", user_.Render(state)});
  return messages;
}

std::vector<int32_t> Prompter::Encode(const std::vector<ChatMessage>& messages) const {
  ChatOptions options;
  options.enable_thinking = config_.prompt.enable_thinking;
  return policy_->EncodeChat(messages, options);
}

void Prompter::Begin(const Trajectory& trajectory, const Trajectory& shown, const MetricRegistry* metrics, bool encode,
                     RoundRecord* round) {
  *round = RoundRecord();
  round->round = trajectory.round();
  round->code_a = trajectory.code_a();
  round->code_b = trajectory.code_b();
  PromptState state = shown.Prompt(metrics);
  round->messages = Messages(state);
  if (!encode) return;
  size_t whole = 0;
  for (;;) {
    round->prompt_ids = Encode(round->messages);
    whole = std::max(whole, round->prompt_ids.size());
    if (round->prompt_ids.size() <= room_ || !ShortenHistory(&state)) break;
    round->messages = Messages(state);
  }
  ++encoded_;
  shortened_ += round->prompt_ids.size() < whole ? 1 : 0;
  too_long_ += round->prompt_ids.size() > room_ ? 1 : 0;
}

std::string Prompter::Shortened() const {
  if (shortened_ == 0) return "";
  std::string text = std::to_string(shortened_) + " of " + std::to_string(encoded_) +
                     " prompts left out earlier rounds to have at most " + std::to_string(room_) + " tokens";
  if (too_long_ > 0) text += "; " + std::to_string(too_long_) + " are longer all the same";
  return text;
}

ContextRoom RoomInContext(const PipelineConfig& config, Policy& policy, std::span<const PromptState> first_rounds) {
  if (first_rounds.empty()) return {};
  ContextRoom room;
  if (policy.info().end_id_count == 0) {
    const auto given = [](const StageConfig& stage) { return stage.suggestions == SuggestionSource::kUniform; };
    const bool needed = std::any_of(config.stages.begin(), config.stages.end(), given);
    (needed ? room.mistake : room.warning) =
        std::string("the policy has no end token, so ") +
        (needed ? "no suggestion of the coder's list (suggestions: uniform) can be a completion"
                : "all its completions have loop.sampling.max_new_tokens tokens") +
        ": give its model one, \"eos_token_id\" in generation_config.json";
    if (needed) return room;
  }
  const Prompter prompter(config, &policy);
  size_t longest = 0;
  std::string of;
  for (const PromptState& state : first_rounds) {
    const size_t tokens = prompter.Encode(prompter.Messages(state)).size();
    if (tokens <= longest) continue;
    longest = tokens;
    of = state.problem.name;
  }
  const size_t context = policy.info().context_length;
  const uint32_t wanted = config.loop.sampling.max_new_tokens;
  const std::string found = "the first prompt of problem " + of + " has at least " + std::to_string(longest) +
                            " tokens, and the policy's context holds " + std::to_string(context);
  const std::string advice = ": shorten prompt.user, leave the problem out, or take a model with a longer context";
  if (config.prompt.max_tokens > 0 && config.prompt.max_tokens + wanted > context)
    room.warning += (room.warning.empty() ? "" : "; ") + std::string("prompt.max_tokens (") +
                    std::to_string(config.prompt.max_tokens) + ") and loop.sampling.max_new_tokens (" +
                    std::to_string(wanted) + ") together exceed the policy's context (" + std::to_string(context) +
                    "): later rounds may have no room for a completion";
  if (longest >= context) return {found + ", so there is no room for a completion" + advice, ""};
  if (context - longest >= wanted) return room;
  room.warning += (room.warning.empty() ? "" : "; ") + found + ", which leaves " + std::to_string(context - longest) +
                  " for completions, not loop.sampling.max_new_tokens (" + std::to_string(wanted) +
                  "), and less in later rounds where kernels grow" + advice;
  return room;
}

}  // namespace kgrpo
