#include "coder_gpt4o/client/excerpt.h"

#include <utf8proc.h>

namespace kgrpo::coder_gpt4o {
namespace {

// True if the text begins with a tag, and not with a "<" of other text.
bool BeginsWithTag(std::string_view text) {
  constexpr std::string_view kFirst = "/!?abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (text.size() < 2 || kFirst.find(text[1]) == std::string_view::npos) return false;
  const size_t end = text.find_first_of("<>", 1);
  return end != std::string_view::npos && text[end] == '>';
}

}  // namespace

std::string Excerpt(std::string_view text, size_t most) {
  std::string excerpt;
  bool in_tag = false;
  bool space = false;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                     static_cast<utf8proc_ssize_t>(text.size()), &code);
    const std::string_view character = text.substr(0, length > 0 ? static_cast<size_t>(length) : 1);
    const bool tag = !in_tag && character == "<" && BeginsWithTag(text);
    text.remove_prefix(character.size());
    const auto first = static_cast<unsigned char>(character.front());
    if (in_tag) {
      in_tag = character != ">";
    } else if (tag) {
      in_tag = true;
      space = true;
    } else if (first <= ' ' || first == 0x7F) {
      space = true;
    } else {
      if (space && !excerpt.empty()) excerpt += ' ';
      space = false;
      excerpt += length > 0 ? character : "?";
      if (excerpt.size() >= most) return excerpt + "...";
    }
  }
  return excerpt;
}

}  // namespace kgrpo::coder_gpt4o
