// The `model`, `added_tokens` and `decoder` parts of a tokenizer.json, read and checked. Used by Tokenizer::Load.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_VOCABULARY_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_VOCABULARY_H_
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy_qwen/tokenizer/added_tokens.h"
#include "policy_qwen/tokenizer/bpe.h"

namespace kgrpo::tokenizer {

// Lets an unordered_map keyed by std::string be asked with a std::string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TokenIds = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

struct Vocabulary {
  struct Token {
    std::string bytes;     // what the token decodes to
    bool present = false;  // ids may have gaps
    bool special = false;
  };
  TokenIds ids;               // by the file's spelling, added tokens included
  std::vector<Token> tokens;  // by id
};

// Reads `model` (its type must be BPE) into `vocabulary`, and returns the encoder of words.
Bpe ReadBpe(const std::string& file, const nlohmann::json& root, Vocabulary& vocabulary);

// Reads `added_tokens` in the file's order, and adds them to `vocabulary`, which holds the model's tokens by then.
std::vector<AddedToken> ReadAddedTokens(const std::string& file, const nlohmann::json& root, Vocabulary& vocabulary);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_VOCABULARY_H_
