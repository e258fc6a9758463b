// Regular expressions with the meaning they have in a tokenizer.json, that is, Oniguruma's, run by PCRE2 with its
// just-in-time compiler. Used by the pre-tokenizers. The look-ahead in every such pattern is why linear-time engines
// won't do.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_REGEX_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_REGEX_H_
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct pcre2_real_code_8;

namespace kgrpo::tokenizer {

// Rewrites an Oniguruma pattern into one that means the same to PCRE2 (in its UTF and UCP modes): the two differ over
// `\s` (U+180E), `\w`, `\v`, `\h`, scripts and more. Throws Error that names the first construct it can't carry over.
std::string TranslatePattern(std::string_view oniguruma);

// A compiled pattern. Immutable: safe from any thread.
class Regex {
 public:
  explicit Regex(std::string_view oniguruma_pattern);

  // All matches in valid UTF-8 text as [start, end) byte offsets, leftmost first, without overlap. An empty match right
  // after a match is passed over, as Oniguruma's iterator does. Throws Error if PCRE2 gives up (its limits).
  std::vector<std::pair<size_t, size_t>> FindAll(std::string_view valid_text) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::string pattern_;
  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_REGEX_H_
