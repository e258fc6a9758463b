// The `normalizer` of a tokenizer.json: nothing, or Unicode normalization form C. Called by Tokenizer on every stretch
// of text between added tokens.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_NORMALIZER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_NORMALIZER_H_
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kgrpo::tokenizer {

class Normalizer {
 public:
  // Leaves text as it is.
  Normalizer() = default;

  // Reads the value of the file's `normalizer` key (null, NFC, or a Sequence of these). Throws Error for any other, by
  // name.
  Normalizer(const std::string& file, const nlohmann::json& value);

  // Needs valid UTF-8. Safe from any thread.
  std::string Normalize(std::string_view text) const;
  bool changes_text() const { return nfc_; }

 private:
  bool nfc_ = false;
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_NORMALIZER_H_
