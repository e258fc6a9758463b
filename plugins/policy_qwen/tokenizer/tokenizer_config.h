// The files beside tokenizer.json: tokenizer_config.json and chat_template.jinja. Read by Tokenizer (the roles of
// tokens) and by ChatTemplate (the template).
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::tokenizer {

struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  // added_tokens_decoder, which older writers repeat here: (id, content), in the order of the ids' text in the file.
  std::vector<std::pair<int64_t, std::string>> added_tokens;
  // The Jinja text, and the file (with the key) it comes from. chat_template.jinja goes before tokenizer_config.json;
  // of several named templates, "default" counts.
  std::optional<std::string> chat_template;
  std::string chat_template_source;
  std::string file;  // where tokenizer_config.json is, or would be
};

// Reads what is there of both files; neither need exist. Keys that concern neither tokens nor the template are passed
// over. Throws Error that names file and key where a value has the wrong type.
TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
