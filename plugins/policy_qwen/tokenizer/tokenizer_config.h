// The files beside tokenizer.json: tokenizer_config.json, and the older added_tokens.json and special_tokens_map.json,
// read as transformers 5 does; the chat templates. Read by Tokenizer (tokens, their flags and roles) and by
// ChatTemplate (the template).
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "policy_qwen/tokenizer/added_tokens.h"

namespace kgrpo::tokenizer {

struct TokenizerConfig {
  std::vector<std::pair<std::string, std::string>> named_tokens;  // ("bos_token", "<s>"), ...: keys that end in _token
  // Tokens of added_tokens_decoder or, if that is absent, added_tokens.json; with their ids, ascending.
  std::vector<AddedToken> added_tokens;
  bool has_added_tokens_decoder = false;
  std::vector<AddedToken> special_tokens;  // the named ones, then extra_special_tokens; without ids
  // The class of transformers that reads the folder, if it makes its own pipeline of the vocabulary and merges:
  // "Qwen2Tokenizer", "LlamaTokenizer" or "GPT2Tokenizer". Else empty: tokenizer.json counts.
  std::string tokenizer_class;
  bool add_prefix_space = false, legacy = false;  // arguments of these classes
  struct Template {
    std::string jinja;
    std::string source;  // the file, with the key
  };
  // By name: "default", and often "tool_use". Files (chat_template.jinja is the default, others are in
  // additional_chat_templates) replace those of tokenizer_config.json, as in transformers.
  std::map<std::string, Template> chat_templates;
  std::string file;  // where tokenizer_config.json is, or would be
};

// Reads the files that are there; none need exist. Keys that concern neither tokens nor the template are passed over.
// Throws Error that names file and key if a value has the wrong type.
TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder);

// Replaces the parts of a tokenizer.json that `config.tokenizer_class` makes itself.
void ApplyTokenizerClass(const TokenizerConfig& config, nlohmann::json& tokenizer);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_TOKENIZER_CONFIG_H_
