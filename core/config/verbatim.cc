#include "config/verbatim.h"

#include <algorithm>

namespace kgrpo {
namespace {

// A literal block: "|" with indicators, perhaps a comment, then the lines, indented alike.
std::optional<Position> FindBlock(const std::vector<std::string_view>& lines, const std::string& text,
                                  const Position& at) {
  const auto first = static_cast<size_t>(at.line);  // the line after the header's, counted from 0
  size_t indent = std::string_view::npos;           // the first line that is not blank has it
  const std::vector<std::string_view> wanted = LinesOf(text);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (first + i >= lines.size()) return {};
    const std::string_view line = lines[first + i];
    if (wanted[i].empty()) {
      if (line.find_first_not_of(' ') != std::string_view::npos) return {};
      continue;
    }
    if (indent == std::string_view::npos) {
      if (line.size() < wanted[i].size()) return {};
      indent = line.size() - wanted[i].size();
    }
    if (line.substr(0, indent) != std::string(indent, ' ') || line.substr(indent) != wanted[i]) return {};
  }
  if (indent == std::string_view::npos) return {};
  return Position{at.file, at.line + 1, static_cast<int>(indent) + 1, at.rank};
}

}  // namespace

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

std::optional<Position> FindVerbatim(const std::vector<std::string_view>& lines, const std::string& text,
                                     const Position& at) {
  if (at.line < 1 || at.column < 1 || static_cast<size_t>(at.line) > lines.size()) return {};
  const std::string_view line = lines[static_cast<size_t>(at.line) - 1];
  const auto begin = static_cast<size_t>(at.column) - 1;
  // Columns count characters, not bytes: a text after non-ASCII characters in its line is not searched for.
  if (begin >= line.size() ||
      std::any_of(line.begin(), line.begin() + at.column - 1, [](char c) { return (c & 0x80) != 0; })) {
    return {};
  }
  const std::string_view rest = line.substr(begin);
  if (rest.front() == '|') return FindBlock(lines, text, at);
  const bool quoted = rest.front() == '"' || rest.front() == '\'';
  if (text.empty() || !rest.substr(quoted).starts_with(text)) return {};
  if (quoted && !rest.substr(1 + text.size()).starts_with(rest.front())) return {};
  return Position{at.file, at.line, at.column + quoted, at.rank};
}

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Position PlaceWithin(const std::string& text, const Position& begin, size_t line, size_t column) {
  const std::vector<std::string_view> lines = LinesOf(text);
  Position place = begin;
  place.line += static_cast<int>(line) - 1;
  const std::string_view before = line <= lines.size() ? lines[line - 1].substr(0, column - 1) : std::string_view();
  place.column += static_cast<int>(CountCharacters(before));
  return place;
}

}  // namespace kgrpo
