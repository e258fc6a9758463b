#include "coder_gpt4o/client/excerpt.h"

#include <utf8proc.h>

namespace kgrpo::coder_gpt4o {

std::string Excerpt(std::string_view text, size_t most) {
  std::string excerpt;
  bool in_tag = false;
  bool space = false;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                     static_cast<utf8proc_ssize_t>(text.size()), &code);
    const std::string_view character = text.substr(0, length > 0 ? static_cast<size_t>(length) : 1);
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
      excerpt += length > 0 ? character : "?";
      if (excerpt.size() >= most) return excerpt + "...";
    }
  }
  return excerpt;
}

}  // namespace kgrpo::coder_gpt4o
