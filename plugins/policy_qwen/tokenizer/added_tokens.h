// The added tokens of a tokenizer.json: whole strings, such as <|im_end|>, that are found in a text before it is
// split further. Used by Tokenizer.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_ADDED_TOKENS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_ADDED_TOKENS_H_
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::tokenizer {

// A token that is cut out of a text as a whole.
struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  // matches only where no word character touches it
  bool lstrip = false;       // takes the white space on its left with it
  bool rstrip = false;       // takes the white space on its right with it
  bool normalized = false;   // is looked for in the normalized text, else in the text as given
  bool special = false;      // left out by Decode(skip_special), and not looked for if special tokens are not parsed

  bool operator==(const AddedToken&) const = default;
};

// One of tokenizer.json's `added_tokens`, or the same kind of object in another file, without its id. `special` is the
// default of that flag. RefuseOthers is left to the caller.
AddedToken ReadAddedToken(class ObjectReader& reader, bool special);

// A stretch of a text: an added token, or (id -1) text between them.
struct Stretch {
  std::string_view text;
  int32_t id;
};

// Finds a set of added tokens in texts; at each place the longest wins. Immutable once built: safe from any thread.
class AddedTokenMatcher {
 public:
  // `pattern` is what to look for: the token's content, normalized if the token is. The first of two equal patterns
  // wins.
  void Add(const AddedToken& token, const std::string& pattern);

  // Cuts valid UTF-8 text into stretches, in order; text stretches are never empty. With parse_special false, special
  // tokens are text (they still hide what overlaps them from the search, as in Hugging Face's tokenizers).
  std::vector<Stretch> Split(std::string_view text, bool parse_special) const;

 private:
  struct Pattern {
    std::string text;
    AddedToken token;
  };
  std::array<std::vector<Pattern>, 256> patterns_;  // by their first byte, the longest first
};

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_ADDED_TOKENS_H_
