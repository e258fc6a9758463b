#include <kgrpo/support/closest.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace kgrpo {
namespace {

char Lower(char character) { return static_cast<char>(std::tolower(static_cast<unsigned char>(character))); }

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

std::string Closest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string closest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    // A candidate that keeps no letter of the word is not close, however short both are.
    if (distance < least && distance < std::max(word.size(), candidate.size())) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

std::string JoinedText(const std::vector<std::string>& texts, const char* separator) {
  std::string joined;
  for (const std::string& text : texts) joined += (&text == &texts.front() ? "" : separator) + text;
  return joined;
}

}  // namespace kgrpo
