#include "coder_shared/text.h"

#include <algorithm>

namespace kgrpo::coder_shared {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

size_t FindAny(std::string_view text, std::string_view phrases) {
  size_t first = std::string_view::npos;
  while (!phrases.empty()) {
    const size_t end = std::min(phrases.find('|'), phrases.size());
    first = std::min(first, text.find(phrases.substr(0, end)));
    phrases.remove_prefix(std::min(end + 1, phrases.size()));
  }
  return first;
}

size_t StartsWithAny(std::string_view text, std::string_view phrases) {
  while (!phrases.empty()) {
    const size_t end = std::min(phrases.find('|'), phrases.size());
    if (text.starts_with(phrases.substr(0, end))) return end;
    phrases.remove_prefix(std::min(end + 1, phrases.size()));
  }
  return 0;
}

std::string OneLine(std::string_view text, size_t bytes) {
  std::string line;
  for (const char c : Trimmed(text)) {
    if (line.size() >= bytes && (static_cast<unsigned char>(c) & 0xc0) != 0x80) return line + "...";
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!control || line.empty() || line.back() != ' ') line += control ? ' ' : c;
  }
  return line;
}

}  // namespace kgrpo::coder_shared
