#include "policy_qwen/tokenizer/chat_template.h"

#include <kgrpo/sdk/error.h>

#include "policy_qwen/tokenizer/chat_template_recognition.h"
#include "policy_qwen/tokenizer/tokenizer_config.h"

namespace kgrpo::tokenizer {
namespace {

constexpr std::string_view kWayOut =
    "; set the policy's option chat_template to the format that the model was trained with (chatml or qwen3)";

constexpr std::string_view kThinkStart = "<think>";
constexpr std::string_view kThinkEnd = "</think>";

std::string_view StripLeft(std::string_view text) {
  const size_t start = text.find_first_not_of('\n');
  return start == std::string_view::npos ? std::string_view() : text.substr(start);
}

std::string_view StripRight(std::string_view text) {
  const size_t last = text.find_last_not_of('\n');
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

// An assistant's message as Qwen3 splits it: the thoughts are reasoning_content if that is given, else those in the
// content.
struct Thoughts {
  std::string_view reasoning;
  std::string_view answer;
};
Thoughts TakeApart(const Message& message) {
  const std::string_view content = message.content;
  if (message.reasoning_content) return {*message.reasoning_content, content};
  const size_t first_end = content.find(kThinkEnd);
  if (first_end == std::string_view::npos) return {{}, content};
  std::string_view reasoning = StripRight(content.substr(0, first_end));
  if (const size_t start = reasoning.rfind(kThinkStart); start != std::string_view::npos) {
    reasoning = reasoning.substr(start + kThinkStart.size());
  }
  return {StripLeft(reasoning), StripLeft(content.substr(content.rfind(kThinkEnd) + kThinkEnd.size()))};
}

// Index of the last message in which a user asks something, or of the last message if there is none. The messages after
// it are an answer in progress, and keep their thoughts. A user's turn that carries a tool's response asks nothing.
size_t LastQuery(std::span<const Message> messages) {
  for (size_t i = messages.size(); i-- > 0;) {
    const std::string_view content = messages[i].content;
    const bool response = content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
    if (messages[i].role == "user" && !response) return i;
  }
  return messages.size() - 1;
}

void AppendTurn(std::string_view role, std::string_view content, std::string& out) {
  out.append("<|im_start|>").append(role).append("\n").append(content).append("<|im_end|>\n");
}

// Neighbouring tool messages share one user's turn.
void AppendToolResponse(std::span<const Message> messages, size_t i, std::string& out) {
  if (i == 0 || messages[i - 1].role != "tool") out.append("<|im_start|>user");
  out.append("\n<tool_response>\n").append(messages[i].content).append("\n</tool_response>");
  if (i + 1 == messages.size() || messages[i + 1].role != "tool") out.append("<|im_end|>\n");
}

void AppendThinkingAssistant(std::span<const Message> messages, size_t i, size_t last_query, std::string& out) {
  const Thoughts thoughts = TakeApart(messages[i]);
  const bool last = i + 1 == messages.size();
  if (i > last_query && (last || !thoughts.reasoning.empty())) {
    std::string content("<think>\n");
    content.append(StripLeft(StripRight(thoughts.reasoning)))
        .append("\n</think>\n\n")
        .append(StripLeft(thoughts.answer));
    AppendTurn("assistant", content, out);
  } else {
    AppendTurn("assistant", thoughts.answer, out);
  }
}

}  // namespace

ChatTemplate ChatTemplate::Detect(const std::filesystem::path& folder) {
  const TokenizerConfig config = ReadTokenizerConfig(folder);
  if (!config.chat_template) {
    throw Error(
        KGRPO_ERROR_UNSUPPORTED,
        config.file + ": chat_template: is missing, and there is no chat_template.jinja" + std::string(kWayOut));
  }
  return Recognise(*config.chat_template, config.chat_template_source);
}

ChatTemplate ChatTemplate::Recognise(std::string_view jinja, const std::string& source) {
  try {
    return ChatTemplate(RecogniseChatTemplate(jinja));
  } catch (const Error& error) {
    throw Error(error.code(), source + ": " + error.what() + std::string(kWayOut));
  }
}

ChatTemplate ChatTemplate::ByName(std::string_view name, std::optional<std::string> default_system) {
  if (name == "chatml") return ChatTemplate({"chatml", std::move(default_system), false, Format::Tool::kLikeOthers});
  if (name == "qwen3") return ChatTemplate({"qwen3", std::move(default_system), true, Format::Tool::kInUserTurn});
  throw Error(KGRPO_ERROR_INVALID, "there is no chat template '" + std::string(name) + "': chatml and qwen3 are there");
}

std::string ChatTemplate::Render(std::span<const Message> messages, bool add_generation_prompt,
                                 std::optional<bool> enable_thinking) const {
  if (messages.empty()) throw Error(KGRPO_ERROR_INVALID, "a conversation needs at least one message");
  std::string out;
  if (format_.default_system && messages[0].role != "system") AppendTurn("system", *format_.default_system, out);
  const size_t last_query = format_.thinking ? LastQuery(messages) : 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.role == "assistant" && format_.thinking) {
      AppendThinkingAssistant(messages, i, last_query, out);
    } else if (message.role == "tool" && format_.tool == Format::Tool::kInUserTurn) {
      AppendToolResponse(messages, i, out);
    } else if (message.role == "system" || message.role == "user" || message.role == "assistant" ||
               (message.role == "tool" && format_.tool == Format::Tool::kLikeOthers)) {
      AppendTurn(message.role, message.content, out);
    } else {
      throw Error(KGRPO_ERROR_INVALID, "messages[" + std::to_string(i) + "].role is '" + message.role +
                                           "': must be system, user or " + "assistant" +
                                           (format_.tool == Format::Tool::kRefused ? "" : ", or tool"));
    }
  }
  if (add_generation_prompt) {
    out.append("<|im_start|>assistant\n");
    if (format_.thinking && enable_thinking == false) out.append("<think>\n\n</think>\n\n");
  }
  return out;
}

}  // namespace kgrpo::tokenizer
