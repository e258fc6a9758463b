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

}  // namespace kgrpo
