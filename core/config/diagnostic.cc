#include "config/diagnostic.h"

#include <algorithm>
#include <cctype>
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

// No message repeats a key, wherever in the file it stood.
std::vector<Diagnostic> WithoutKeys(std::vector<Diagnostic> diagnostics) {
  for (Diagnostic& diagnostic : diagnostics) {
    bool hidden = false;
    for (std::string* text : {&diagnostic.path, &diagnostic.message, &diagnostic.suggestion})
      hidden = HideKeys(text) || hidden;
    if (hidden)
      diagnostic.message += " (what looks like a key is not repeated; one that stood in a file should be revoked)";
  }
  return diagnostics;
}

char Lower(char character) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
}

// The optimal string alignment distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) && Lower(a[i - 2]) == Lower(b[j - 1]);
      if (swapped) current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

}  // namespace

std::string Position::ToString() const {
  if (line == 0) return file;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string Diagnostic::ToString() const {
  std::string text = at.ToString() + ": ";
  if (!path.empty()) text += path + ": ";
  text += message;
  if (!suggestion.empty()) text += "; did you mean \"" + suggestion + "\"?";
  return text;
}

const Position& SaidLast(const Position& a, const Position& b) {
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

std::string Closest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string closest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    // Nothing is near a word of which nothing is left.
    if (distance < least && distance < std::max(word.size(), candidate.size())) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

}  // namespace kgrpo
