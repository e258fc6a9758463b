// The `normalizer` of a tokenizer.json: changes the text between added tokens before it is cut into words. Called by
// Tokenizer.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_NORMALIZER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_NORMALIZER_H_
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::tokenizer {

// Immutable: safe from any thread.
class Normalizer {
 public:
  struct Result {
    std::string text;
    bool keeps_start = true;  // the first character comes from the first character of the given text
  };

  // Reads the value of the file's `normalizer` key: null, NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace,
  // ByteLevel, or a Sequence of these. Throws Error for any other, by name.
  Normalizer(const std::string& file, const nlohmann::json& value);

  // Needs valid UTF-8. Time O(n log n).
  Result Normalize(std::string_view text) const;

 private:
  std::vector<std::function<void(Result&)>> steps_;
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_NORMALIZER_H_
