// The `pre_tokenizer` of a tokenizer.json: cuts text into the words that byte-pair encoding never joins. Used by
// Tokenizer.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_PRE_TOKENIZER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_PRE_TOKENIZER_H_
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy_qwen/tokenizer/regex.h"

namespace kgrpo::tokenizer {

// How a Split treats the matches of its pattern (and, with the matches, text between them): the names of the file.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Immutable: safe from any thread.
class PreTokenizer {
 public:
  // Reads the value of the file's `pre_tokenizer` key: ByteLevel, or a Sequence of Split, Digits and, last, ByteLevel.
  // Throws Error for anything else, by name.
  PreTokenizer(const std::string& file, const nlohmann::json& value);

  // The words of valid UTF-8 text, in order, none of them empty. They point into `text` or into `storage`, which is
  // filled with the words that are no part of the text (those that were given a space in front).
  std::vector<std::string_view> Split(std::string_view text, std::deque<std::string>& storage) const;

 private:
  struct SplitStep {
    std::variant<Regex, std::string> pattern;  // a regular expression, or the text itself
    SplitBehavior behavior;
    bool invert;  // the text between the matches takes the matches' part
  };
  struct DigitsStep {
    bool individual;
  };
  struct ByteLevelStep {
    bool add_prefix_space;
    std::unique_ptr<Regex> words;  // GPT-2's; null if use_regex is false
  };
  using Step = std::variant<SplitStep, DigitsStep, ByteLevelStep>;

  void ReadSteps(const std::string& file, const std::string& path, const nlohmann::json& value);
  static SplitStep ReadSplit(class ObjectReader& reader);
  static void Apply(const Step& step, std::string_view word, std::vector<std::string_view>& words,
                    std::deque<std::string>& storage);

  std::vector<Step> steps_;
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_PRE_TOKENIZER_H_
