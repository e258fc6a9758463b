#include "config/diagnostic.h"

#include <algorithm>
#include <climits>
#include <tuple>
#include <utility>

#include "config/hidden_keys.h"

namespace kgrpo {
namespace {

std::string Join(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += diagnostic.ToString();
  }
  return text;
}

// Removes keys from all messages, wherever in the file the keys stood.
std::vector<Diagnostic> WithoutKeys(std::vector<Diagnostic> diagnostics) {
  for (Diagnostic& diagnostic : diagnostics) {
    bool hidden = false;
    for (std::string* text : {&diagnostic.path, &diagnostic.message, &diagnostic.suggestion})
      hidden = HideKeys(text) || hidden;
    if (hidden)
      diagnostic.message += " (text that looks like a key is hidden; revoke a key that was written into a file)";
  }
  return diagnostics;
}

}  // namespace

std::string Position::ToString() const {
  if (line == 0) return file;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string Diagnostic::ToString() const {
  std::string text = at.file.empty() ? "" : at.ToString() + ": ";
  if (!path.empty()) text += path + ": ";
  text += message;
  if (!suggestion.empty()) text += "; did you mean \"" + suggestion + "\"?";
  return text;
}

const Position& SetLast(const Position& a, const Position& b) {
  const auto age = [](const Position& at) { return at.file == "--set" ? -1 : at.line == 0 ? INT_MAX : at.rank; };
  return age(b) < age(a) ? b : a;
}

void SortDiagnostics(std::vector<Diagnostic>* diagnostics) {
  std::stable_sort(diagnostics->begin(), diagnostics->end(), [](const Diagnostic& a, const Diagnostic& b) {
    const auto place = [](const Diagnostic& d) {
      return std::make_tuple(d.at.line == 0, d.at.rank, d.at.line, d.at.column);
    };
    return place(a) < place(b);
  });
}

ConfigError::ConfigError(std::vector<Diagnostic> diagnostics)
    : ConfigError(WithoutKeys(std::move(diagnostics)), Hidden()) {}

ConfigError::ConfigError(std::vector<Diagnostic> diagnostics, Hidden)
    : Error(KGRPO_ERROR_INVALID, Join(diagnostics)), diagnostics_(std::move(diagnostics)) {}

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
