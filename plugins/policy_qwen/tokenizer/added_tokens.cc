#include "policy_qwen/tokenizer/added_tokens.h"

#include <algorithm>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

bool StandsAlone(std::string_view text, size_t start, size_t end) {
  const bool word_before = start > 0 && IsWordCharacter(CodePointBefore(text, start).value);
  const bool word_after = end < text.size() && IsWordCharacter(CodePointAt(text, end).value);
  return !word_before && !word_after;
}

size_t StartOfSpaceBefore(std::string_view text, size_t position) {
  while (position > 0) {
    const CodePoint before = CodePointBefore(text, position);
    if (!IsWhiteSpace(before.value)) break;
    position -= before.length;
  }
  return position;
}

size_t EndOfSpaceAfter(std::string_view text, size_t position) {
  while (position < text.size()) {
    const CodePoint next = CodePointAt(text, position);
    if (!IsWhiteSpace(next.value)) break;
    position += next.length;
  }
  return position;
}

}  // namespace

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
  size_t taken = 0;  // everything before is in `stretches`
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
    if (token.lstrip) start = std::max(StartOfSpaceBefore(text, start), taken);
    if (token.rstrip) end = EndOfSpaceAfter(text, end);
    if (taken < start) stretches.push_back({text.substr(taken, start - taken), -1});
    stretches.push_back({text.substr(start, end - start), token.id});
    taken = end;
  }
  if (taken < text.size()) stretches.push_back({text.substr(taken), -1});
  return stretches;
}

}  // namespace kgrpo::tokenizer
