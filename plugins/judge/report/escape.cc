#include "judge/report/escape.h"

#include <cstddef>
#include <cstdint>

namespace kgrpo::evaluator {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: no UTF-8 here
};

Character First(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = code << 6 | (next & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {code, bytes};
}

bool MayBeShown(uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n';
  if (code >= 0x7F && code < 0xA0) return false;
  // Marks that turn the direction of text: what is shown would not be what is compiled.
  return !(code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069));
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const Character character = First(text);
    const size_t bytes = character.bytes == 0 ? 1 : character.bytes;
    if (character.bytes == 0 || !MayBeShown(character.code)) {
      if (!text.starts_with("\r\n")) escaped += kReplacement;
    } else {
      switch (text[0]) {
        case '&': escaped += "&amp;"; break;
        case '<': escaped += "&lt;"; break;
        case '>': escaped += "&gt;"; break;
        case '"': escaped += "&quot;"; break;
        case '\'': escaped += "&#39;"; break;
        default: escaped += text.substr(0, bytes);
      }
    }
    text.remove_prefix(bytes);
  }
  return escaped;
}

}  // namespace kgrpo::evaluator
