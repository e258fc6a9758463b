#include "policy_qwen/tokenizer/added_tokens.h"

#include <algorithm>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

bool StandsAlone(std::string_view text, size_t start, size_t end) {
  const bool word_before = start > 0 && IsWordCharacter(CodePointBefore(text, start).value);
  const bool word_after = end < text.size() && IsWordCharacter(CodePointAt(text, end).value);
  return !word_before && !word_after;
}

}  // namespace

AddedToken ReadAddedToken(ObjectReader& reader, bool special) {
  AddedToken token;
  token.content = reader.String("content");
  if (token.content.empty()) reader.Fail("content", "is empty");
  token.single_word = reader.Bool("single_word", false);
  token.lstrip = reader.Bool("lstrip", false);
  token.rstrip = reader.Bool("rstrip", false);
  token.special = reader.Bool("special", special);
  token.normalized = reader.Bool("normalized", !token.special);
  return token;
}

void AddedTokenMatcher::Add(const AddedToken& token, const std::string& pattern) {
  if (pattern.empty()) return;
  std::vector<Pattern>& patterns = patterns_[static_cast<uint8_t>(pattern[0])];
  const auto place = std::ranges::find_if(
      patterns, [&](const Pattern& other) { return other.text.size() < pattern.size() || other.text == pattern; });
  if (place == patterns.end() || place->text != pattern) patterns.insert(place, {pattern, token});
}

std::vector<Stretch> AddedTokenMatcher::Split(std::string_view text, bool parse_special) const {
  std::vector<Stretch> stretches;
  size_t taken = 0;      // everything before is in `stretches`
  size_t space_end = 0;  // of the white space that was last looked at: it is looked at once, whatever is found in it
  for (size_t position = 0; position < text.size();) {
    const std::vector<Pattern>& patterns = patterns_[static_cast<uint8_t>(text[position])];
    const auto longest = std::ranges::find_if(
        patterns, [rest = text.substr(position)](const Pattern& pattern) { return rest.starts_with(pattern.text); });
    if (longest == patterns.end()) {
      ++position;
      continue;
    }
    const AddedToken& token = longest->token;
    size_t end = position + longest->text.size();
    size_t start = position;
    position = end;  // the search goes on here, whether the match counts or not
    if (token.special && !parse_special) continue;
    if (token.single_word && !StandsAlone(text, start, end)) continue;
    if (token.lstrip) start = taken >= start ? taken : StartOfSpaceBefore(text, start, taken);
    if (token.rstrip) end = space_end = end < space_end ? space_end : EndOfSpaceAfter(text, end);
    if (taken < start) stretches.push_back({text.substr(taken, start - taken), -1});
    if (start >= end) continue;  // the token before has taken it
    stretches.push_back({text.substr(start, end - start), token.id});
    taken = end;
  }
  if (taken < text.size()) stretches.push_back({text.substr(taken), -1});
  return stretches;
}

}  // namespace kgrpo::tokenizer
