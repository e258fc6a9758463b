// A conversation as the text that a chat model was trained on. The policy renders its prompts with it; Tokenizer
// (tokenizer.h) turns the text into tokens.
//
// Models bring their format as a Jinja program. The program is not run: its statements are recognised as one of the
// formats below (chat_template_recognition.cc), and any other program is refused.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_H_
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kgrpo::tokenizer {

struct Message {
  std::string role;  // system, user, assistant or tool
  std::string content;
  // An assistant's thoughts, where they are kept apart from its answer. Only Qwen3's format shows them.
  std::optional<std::string> reasoning_content;
};

// Immutable: safe from any thread.
class ChatTemplate {
 public:
  // Variations of a ChatML template beside <|im_start|>role\ncontent<|im_end|>\n for each message.
  struct Format {
    std::string name;  // "chatml", or "qwen3": with the thinking switch and the handling of thoughts
    // Goes in front where the conversation doesn't begin with a system message.
    std::optional<std::string> default_system;
    bool thinking = false;
    // Form of a message of role tool: like the others, or within a user's turn, as Qwen writes it since 2.5.
    enum class Tool { kLikeOthers, kInUserTurn, kRefused } tool = Tool::kLikeOthers;
  };

  // Recognises the template of a model folder (chat_template.jinja, else tokenizer_config.json). Throws Error, saying
  // how to name a format instead, if there is none or it is not known.
  static ChatTemplate Detect(const std::filesystem::path& folder);

  // Recognises the text of a template; `source` is where it comes from, for the error.
  static ChatTemplate Recognise(std::string_view jinja, const std::string& source);

  // The format called `name`: "chatml" or "qwen3". Throws Error, with the names there are, for another.
  static ChatTemplate ByName(std::string_view name, std::optional<std::string> default_system = std::nullopt);

  // The text of a conversation, byte for byte what transformers' apply_chat_template gives. add_generation_prompt: ends
  // with the opening of the assistant's turn. enable_thinking: Qwen3's switch; false closes the thoughts before they
  // begin, true and nullopt leave them to the model; formats without thinking() take no notice, as their programs do.
  // Throws Error if there is no message, or a role is not one of the four.
  std::string Render(std::span<const Message> messages, bool add_generation_prompt,
                     std::optional<bool> enable_thinking = std::nullopt) const;

  const std::string& name() const { return format_.name; }
  const std::optional<std::string>& default_system() const { return format_.default_system; }
  bool thinking() const { return format_.thinking; }

 private:
  explicit ChatTemplate(Format format) : format_(std::move(format)) {}
  Format format_;
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_H_
