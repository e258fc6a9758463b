// The files beside tokenizer.json: tokenizer_config.json and the templates. Read by Tokenizer (the roles of tokens) and
// by ChatTemplate (the templates, and the tokens that they write).
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
#include <cstdint>
#include <filesystem>
#include <map>
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
  std::vector<std::pair<std::string, std::string>> named_tokens;  // ("bos_token", "<s>") ...: variables of templates
  struct Template {
    std::string jinja;
    std::string source;  // the file, with the key
  };
  // By name: "default", and often "tool_use". Files (chat_template.jinja is the default, others are in
  // additional_chat_templates) replace those of tokenizer_config.json, as in transformers.
  std::map<std::string, Template> chat_templates;
  std::string file;  // where tokenizer_config.json is, or would be
};

// Reads what is there of both files; neither need exist. Keys that concern neither tokens nor the template are passed
// over. Throws Error that names file and key where a value has the wrong type.
TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
