#include "coder_shared/thoughts.h"

#include "coder_shared/text.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace kgrpo::coder_shared {
namespace {

struct Marks {
  std::string opening, closing;  // in lower case
};

// Of the models that mark their thoughts otherwise than by a tag.
const std::vector<Marks>& KnownMarks() {
  static const std::vector<Marks> kMarks = [] {
    std::vector<Marks> marks = {{"[think]", "[/think]"},
                                {"\u25c1think\u25b7", "\u25c1/think\u25b7"},
                                {"<seed:think>", "</seed:think>"},
                                {"<|begin_of_thought|>", "<|end_of_thought|>"},
                                {"<|start_thinking|>", "<|end_thinking|>"},
                                {"<|thinking|>", "<|/thinking|>"},
                                {"<|channel>thought", "<channel|>"},
                                {"<unused94>", "<unused95>"}};
    for (const char* tag : {"think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad",
                            "analysis", "planning", "inner_monologue", "internal_monologue", "chain_of_thought", "cot"})
      marks.push_back({"<" + std::string(tag) + ">", "</" + std::string(tag) + ">"});
    return marks;
  }();
  return kMarks;
}

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
  for (const Marks& marks : KnownMarks()) {
    std::string kept;
    size_t at = 0, open = lower.find(marks.opening), close = lower.find(marks.closing);
    if (open == std::string::npos && close == std::string::npos) continue;
    while (close != std::string::npos) {
      if (open < close) {
        kept += answer.substr(at, open - at);
      } else {
        kept.clear();  // the opening tag is in the prompt
      }
      at = close + marks.closing.size();
      close = lower.find(marks.closing, at);
      if (open < at) open = lower.find(marks.opening, at);
    }
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
