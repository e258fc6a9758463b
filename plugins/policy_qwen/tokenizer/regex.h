// Regular expressions as a tokenizer.json has them, run by Oniguruma: the engine of Hugging Face's tokenizers. Used by
// the pre-tokenizers, the normalizers and the decoders.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_REGEX_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_REGEX_H_
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy_qwen/tokenizer/json_reader.h"

struct re_pattern_buffer;

namespace kgrpo::tokenizer {

// Byte offsets [start, end) in a text.
using Span = std::pair<size_t, size_t>;

// A compiled pattern. Immutable, cheap to copy, safe from any thread.
class Regex {
 public:
  // Throws Error that names the pattern if Oniguruma can't read it, or if our version of Oniguruma reads it otherwise
  // than the reference's. kLiteral: the pattern is the text itself; kPython: it is in Python's syntax.
  enum class Kind { kTokenizer, kLiteral, kPython };
  explicit Regex(const std::string& pattern, Kind kind = Kind::kTokenizer);

  // All matches in valid UTF-8 text, leftmost first, without overlap. An empty match right after a match is passed
  // over, as the reference's iterator does. Throws Error if Oniguruma gives up (its limit of retries).
  std::vector<Span> FindAll(std::string_view valid_text) const;

  // The text with every match replaced by `content`.
  std::string ReplaceAll(std::string_view valid_text, std::string_view content) const;

 private:
  std::shared_ptr<re_pattern_buffer> code_;
};

// The `pattern` of a Split or Replace: {"String": text} or {"Regex": pattern}.
Regex ReadPattern(ObjectReader& step);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_REGEX_H_
