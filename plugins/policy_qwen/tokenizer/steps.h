// The parts of a tokenizer.json that are a step or a Sequence of steps: `normalizer`, `pre_tokenizer` and `decoder`.
// Used by Tokenizer. Each class reads the value of its key, and throws Error that names a step which is not supported.
// Once made, they are immutable: safe from any thread. All take time O(n log n) at most, but for what a pattern needs.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_STEPS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_STEPS_H_
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::tokenizer {

// Changes the text between added tokens before it is cut into words.
class Normalizer {
 public:
  struct Result {
    std::string text;
    bool keeps_start = true;  // the first character comes from the first character of the given text
  };

  Normalizer(const std::string& file, const nlohmann::json& value);
  Result Normalize(std::string_view valid_text) const;

 private:
  std::vector<std::function<void(Result&)>> steps_;
};

struct Word {
  std::string_view text;
  bool at_start = false;  // begins where the text that is encoded begins: Metaspace's "first" asks for it
};

// Cuts text into the words that byte-pair encoding never joins.
class PreTokenizer {
 public:
  PreTokenizer(const std::string& file, const nlohmann::json& value);

  // The words of valid UTF-8 text, in order, none of them empty. They point into the text or into `storage`, which is
  // filled with the words that a step has rewritten.
  std::vector<Word> Split(Word text, std::deque<std::string>& storage) const;

 private:
  std::vector<std::function<void(std::vector<Word>& words, std::deque<std::string>& storage)>> steps_;
};

// Joins tokens, as the file spells them, to valid UTF-8 text.
class Decoder {
 public:
  Decoder(const std::string& file, const nlohmann::json& value);
  std::string Decode(std::vector<std::string> tokens) const;

 private:
  std::vector<std::function<void(std::vector<std::string>& tokens)>> steps_;
  bool spaced_ = false;  // no decoder: the tokens with spaces between them
};

// A step of type Metaspace, in `pre_tokenizer` or `decoder`: spaces are written as `replacement` (usually U+2581).
struct Metaspace {
  explicit Metaspace(class ObjectReader& step);

  std::string replacement;     // one character
  std::string prepend_scheme;  // "always", "first" or "never": which words get one in front
  bool split = true;           // cut in front of each
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_STEPS_H_
