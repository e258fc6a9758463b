#include "policy_qwen/tokenizer/added_tokens.h"

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

AddedTokenMatcher::AddedTokenMatcher() : nodes_(1) {}

void AddedTokenMatcher::Add(const AddedToken& token, std::string_view pattern) {
  if (pattern.empty()) return;
  can_start_[static_cast<uint8_t>(pattern[0])] = true;
  uint32_t node = 0;
  for (const char c : pattern) {
    const auto [child, created] =
        nodes_[node].children.try_emplace(static_cast<uint8_t>(c), static_cast<uint32_t>(nodes_.size()));
    node = child->second;
    if (created) nodes_.emplace_back();
  }
  if (nodes_[node].token >= 0) return;
  nodes_[node].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
}

int32_t AddedTokenMatcher::LongestAt(std::string_view text, size_t position, size_t& end) const {
  int32_t longest = -1;
  uint32_t node = 0;
  for (size_t i = position; i < text.size(); ++i) {
    const auto child = nodes_[node].children.find(static_cast<uint8_t>(text[i]));
    if (child == nodes_[node].children.end()) break;
    node = child->second;
    if (nodes_[node].token >= 0) {
      longest = nodes_[node].token;
      end = i + 1;
    }
  }
  return longest;
}

std::vector<Stretch> AddedTokenMatcher::Split(std::string_view text, bool parse_special) const {
  std::vector<Stretch> stretches;
  size_t taken = 0;      // everything before is in `stretches`
  size_t space_end = 0;  // of the white space that was last looked at: it is looked at once, whatever is found in it
  for (size_t position = 0; position < text.size();) {
    size_t end = 0;
    const int32_t index = can_start_[static_cast<uint8_t>(text[position])] ? LongestAt(text, position, end) : -1;
    if (index < 0) {
      ++position;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
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
