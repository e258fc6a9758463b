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

}  // namespace kgrpo
