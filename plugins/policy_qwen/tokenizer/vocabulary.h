// The tokens of a tokenizer: those of tokenizer.json's `model`, and the added ones. Used by Tokenizer::Load.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_VOCABULARY_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_VOCABULARY_H_
#include <cstdint>
#include <functional>
#include <map>
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
    std::string text;      // as the file spells it; of an added token that is normalized, the normalized content
    bool present = false;  // ids may have gaps
    bool special = false;
  };
  TokenIds ids;               // by the file's spelling, added tokens included
  std::vector<Token> tokens;  // by id
  size_t model_size = 0;      // number of the model's own tokens
};

// Reads `model` (its type must be BPE) into `vocabulary`, and returns the encoder of words.
Bpe ReadBpe(const std::string& file, const nlohmann::json& root, Vocabulary& vocabulary);

// Reads `added_tokens` in the file's order.
std::vector<AddedToken> ReadAddedTokens(const std::string& file, const nlohmann::json& root);

// Enters an added token into a vocabulary, which has the model's by then, and into `added`, by id. A token that is
// there keeps its id, and another gets the next free one, as in the reference. Throws Error that begins with `where` if
// the token gives its id (not -1) and that is another one. Of tokens with one id, the flags of the last count.
void AddToken(AddedToken token, const std::string& where, Vocabulary& vocabulary, std::map<int32_t, AddedToken>& added);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_VOCABULARY_H_
