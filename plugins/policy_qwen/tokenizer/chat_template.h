// A conversation as the text that a chat model was trained on: a model's Jinja template (jinja.h), with what
// transformers gives to it. The policy renders its prompts with it; Tokenizer (tokenizer.h) turns the text into tokens.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_H_
#include <ctime>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "policy_qwen/tokenizer/jinja.h"

namespace kgrpo::tokenizer {

using Json = nlohmann::ordered_json;

// Immutable: safe from any thread.
class ChatTemplate {
 public:
  // `choice`: "auto" is the folder's own template, "chatml" and "qwen3" are built in, and another text is the path of a
  // Jinja file. `arguments`: variables for every rendering, an object. Null if the choice is auto and the folder has no
  // template. Throws Error "FILE:LINE: what" if a template has anything that is not known here, and Error if no
  // template takes one of the arguments.
  static std::optional<ChatTemplate> Load(const std::filesystem::path& folder, const std::string& choice,
                                          const Json& arguments);

  // The text of a conversation, byte for byte what transformers' apply_chat_template gives. `messages`: objects with a
  // role, mostly a content, and what else the template takes (reasoning_content, tool_calls). `arguments`: further
  // variables; with tools, the folder's template "tool_use" is taken if there is one. add_generation_prompt: ends with
  // the opening of the assistant's turn. Throws Error if the template refuses the conversation, or if it does not read
  // a role, a key of a message or an argument, which it would drop.
  std::string Render(const Json& messages, bool add_generation_prompt, const Json& arguments) const;

  // The files of a model folder that make transformers render as Render does, the arguments of Load included, by their
  // paths in the folder. Empty if the folder's own files do.
  std::map<std::string, std::string> Files() const;

  // Texts like <|name|> that the template writes around an answered question.
  std::vector<std::string> Markers() const;

 private:
  struct Named {
    std::string jinja;
    std::optional<jinja::Template> parsed;  // of those that Render takes
  };
  ChatTemplate(const std::filesystem::path& folder, const Json& arguments) : folder_(folder), arguments_(arguments) {}
  void Add(const std::string& name, const std::string& jinja, const std::string& source);

  std::filesystem::path folder_;
  Json arguments_;
  Json tokens_ = Json::object();  // bos_token and the like
  std::map<std::string, Named> templates_;
  bool own_ = true;                       // the folder's
  std::time_t now_ = std::time(nullptr);  // of strftime_now: of loading, so that a process renders alike
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_H_
