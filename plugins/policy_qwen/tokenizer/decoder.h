// The `decoder` of a tokenizer.json: joins tokens to text. Used by Tokenizer.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_DECODER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_DECODER_H_
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kgrpo::tokenizer {

// Immutable: safe from any thread.
class Decoder {
 public:
  // Reads the value of the file's `decoder` key: null, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip, or a
  // Sequence of these. Throws Error for any other, by name.
  Decoder(const std::string& file, const nlohmann::json& value);

  // The text of tokens, as the file spells them. Valid UTF-8, in time linear in it.
  std::string Decode(std::vector<std::string> tokens) const;

 private:
  std::vector<std::function<void(std::vector<std::string>& tokens)>> steps_;
  bool spaced_ = false;  // no decoder: the tokens with spaces between them
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_DECODER_H_
