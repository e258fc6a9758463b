#include "config/places.h"

#include <algorithm>

#include "config/hidden_keys.h"

namespace kgrpo {
namespace {

// The line (from 1) without its end; empty if the text has fewer.
std::string_view LineOf(std::string_view text, size_t line) {
  for (size_t i = 1; i < line; ++i) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  std::string_view found = text.substr(0, text.find('\n'));
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

}  // namespace

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Position PlaceWithin(std::string_view text, const Position& begin, size_t line, size_t column) {
  Position place = begin;
  place.line += static_cast<int>(line) - 1;
  place.column += static_cast<int>(CountCharacters(LineOf(text, line).substr(0, column - 1)));
  return place;
}

std::string ShowPlace(std::string_view text, int line, int column) {
  constexpr size_t kLongest = 120;
  std::string shown(LineOf(text, static_cast<size_t>(line)));
  if (shown.empty() || shown.size() > kLongest) return {};
  const std::string before = shown;
  HideKeys(&shown);
  std::string place = "\n    " + shown;
  const size_t characters = CountCharacters(shown);
  if (shown == before && column >= 1 && static_cast<size_t>(column) <= characters + 1) {
    std::string under;  // keeps tabs, so that a terminal shows the caret under its column
    for (const char c : shown) {
      if (under.size() + 1 == static_cast<size_t>(column)) break;
      if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) under += c == '\t' ? '\t' : ' ';
    }
    place += "\n    " + under + "^";
  }
  return place;
}

}  // namespace kgrpo
