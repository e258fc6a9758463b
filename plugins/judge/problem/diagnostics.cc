#include "judge/problem/diagnostics.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>

namespace kgrpo::evaluator {
namespace {

// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours count one each.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

void Diagnostics::Add(int line, int column, const std::string& path, const std::string& message) {
  entries_.push_back({file_, line, column, path.empty() ? message : path + ": " + message});
}

void Diagnostics::AddFile(const std::string& file, const std::string& message) {
  entries_.push_back({file, 0, 0, message});
}

void Diagnostics::ThrowIfAny() const {
  if (entries_.empty()) return;
  std::vector<Entry> sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  std::string text;
  for (const Entry& entry : sorted) {
    if (!text.empty()) text += "\n";
    text += entry.file + ":";
    if (entry.line > 0) text += std::to_string(entry.line) + ":" + std::to_string(entry.column) + ":";
    text += " " + entry.text;
  }
  throw Error(KGRPO_ERROR_INVALID, text);
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < best_distance) best = &candidate, best_distance = distance;
  }
  return best == nullptr ? "" : "; did you mean \"" + *best + "\"?";
}

}  // namespace kgrpo::evaluator
