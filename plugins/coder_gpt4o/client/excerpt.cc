#include "coder_gpt4o/client/excerpt.h"

namespace kgrpo::coder_gpt4o {
namespace {

// The length of the UTF-8 character at the beginning of `text`, 0 where none stands there.
size_t CharacterLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : (first & 0xF0) == 0xE0        ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string Excerpt(std::string_view text, size_t most) {
  std::string excerpt;
  bool in_tag = false;
  bool space = false;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    const auto first = static_cast<unsigned char>(character.front());
    if (in_tag) {
      in_tag = character != ">";
    } else if (character == "<") {
      in_tag = true;
      space = true;
    } else if (first <= ' ' || first == 0x7F) {
      space = true;
    } else {
      if (space && !excerpt.empty()) excerpt += ' ';
      space = false;
      excerpt += length == 0 ? std::string_view("?") : character;
      if (excerpt.size() >= most) return excerpt + "...";
    }
  }
  return excerpt;
}

}  // namespace kgrpo::coder_gpt4o
