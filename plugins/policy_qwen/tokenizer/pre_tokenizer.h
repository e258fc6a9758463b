// The `pre_tokenizer` of a tokenizer.json: cuts text into the words that byte-pair encoding never joins. Used by
// Tokenizer.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_PRE_TOKENIZER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_PRE_TOKENIZER_H_
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::tokenizer {

class ObjectReader;

// A step of type Metaspace, in `pre_tokenizer` or `decoder`: spaces are written as `replacement` (usually U+2581).
struct Metaspace {
  explicit Metaspace(ObjectReader& step);

  std::string replacement;     // one character
  std::string prepend_scheme;  // "always", "first" or "never": which words get one in front
  bool split = true;           // cut in front of each
};

struct Word {
  std::string_view text;
  bool at_start = false;  // begins where the text that is encoded begins: Metaspace's "first" asks for it
};

// Immutable: safe from any thread.
class PreTokenizer {
 public:
  // Reads the value of the file's `pre_tokenizer` key: null, ByteLevel, Digits, Metaspace, Punctuation, Split,
  // Whitespace, WhitespaceSplit, or a Sequence of these. Throws Error for anything else, by name.
  PreTokenizer(const std::string& file, const nlohmann::json& value);

  // The words of valid UTF-8 text, in order, none of them empty. They point into the text or into `storage`, which is
  // filled with the words that a step has rewritten.
  std::vector<Word> Split(Word text, std::deque<std::string>& storage) const;

 private:
  // Replaces words by their parts.
  using Step = std::function<void(std::vector<Word>& words, std::deque<std::string>& storage)>;
  std::vector<Step> steps_;
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_PRE_TOKENIZER_H_
