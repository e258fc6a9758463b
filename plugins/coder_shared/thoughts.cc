#include "coder_shared/thoughts.h"

#include "coder_shared/text.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kgrpo::coder_shared {
namespace {

// How thoughts begin and end, in lower case. Chat templates put most of the openings into the prompt.
constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
    {"<think>", "</think>"},
    {"<thinking>", "</thinking>"},
    {"<thought>", "</thought>"},
    {"<thoughts>", "</thoughts>"},
    {"<reasoning>", "</reasoning>"},
    {"<reflection>", "</reflection>"},
    {"<scratchpad>", "</scratchpad>"},
    {"<analysis>", "</analysis>"},
    {"<planning>", "</planning>"},
    {"<inner_monologue>", "</inner_monologue>"},
    {"<chain_of_thought>", "</chain_of_thought>"},
    {"[think]", "[/think]"},                         // Magistral
    {"\u25c1think\u25b7", "\u25c1/think\u25b7"},     // Kimi
    {"<seed:think>", "</seed:think>"},               // Seed-OSS
    {"<|begin_of_thought|>", "<|end_of_thought|>"},  // OpenThinker
    {"<|start_thinking|>", "<|end_thinking|>"},      // Command
    {"<|channel>thought", "<channel|>"}};            // Gemma

// The final channel of gpt-oss; also without its special tokens, which some servers take out of the text.
std::string FinalChannel(const std::string& answer, bool* unfinished) {
  constexpr std::string_view kChannel = "<|channel|>", kFinal = "<|channel|>final", kMessage = "<|message|>",
                             kPlainFinal = "assistantfinal";
  if (answer.find(kChannel) == std::string::npos) {
    const size_t plain = answer.starts_with("analysis") ? answer.find(kPlainFinal) : std::string::npos;
    return plain == std::string::npos ? answer : answer.substr(plain + kPlainFinal.size());
  }
  const size_t final_channel = answer.rfind(kFinal);
  const size_t message = final_channel == std::string::npos ? final_channel : answer.find(kMessage, final_channel);
  *unfinished = message == std::string::npos;
  if (*unfinished) return "";
  const size_t begin = message + kMessage.size();
  const size_t end =
      std::min({answer.find("<|end|>", begin), answer.find("<|return|>", begin), answer.find("<|start|>", begin)});
  return answer.substr(begin, end - begin);
}

}  // namespace

std::string WithoutThoughts(std::string answer, bool* unfinished) {
  *unfinished = false;
  answer = FinalChannel(answer, unfinished);
  std::string lower = Lower(answer);
  for (const auto& [opening, closing] : kMarks) {
    std::string kept;
    size_t at = 0, open = lower.find(opening), close = lower.find(closing);
    if (open == std::string::npos && close == std::string::npos) continue;
    while (close != std::string::npos) {
      kept.append(answer, at, std::min(open, close) - at);
      if (close < open) kept.clear();  // without an opening, all before it is thought
      at = close + closing.size();
      close = lower.find(closing, at);
      if (open < at) open = lower.find(opening, at);
    }
    // Without an end it is a thought only if it begins a line: code may have such a word in a comment.
    if (open != std::string::npos &&
        !Trimmed(answer.substr(answer.rfind('\n', open) + 1, open - answer.rfind('\n', open) - 1)).empty())
      open = std::string::npos;
    *unfinished = *unfinished || open != std::string::npos;
    answer = kept + answer.substr(at, std::min(open, answer.size()) - at);
    lower = Lower(answer);
  }
  // Marks of the end of a turn, which some servers leave in the text.
  for (const std::string_view end : {"</s>", "<|im_end|>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<end_of_turn>"}) {
    if (Trimmed(answer).ends_with(end)) answer.erase(answer.rfind(end));
  }
  return answer;
}

}  // namespace kgrpo::coder_shared
