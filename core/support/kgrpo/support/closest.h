// Messages about names: the intended one for a misspelt one, and lists of them. Used by the host's messages and by
// plugins.
#ifndef KGRPO_SUPPORT_CLOSEST_H
#define KGRPO_SUPPORT_CLOSEST_H

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo {

// Returns the candidate nearest to `word` by edit distance (insertions, deletions, replacements, swaps of neighbours;
// upper and lower case are the same). Returns empty if the distance is above a third of the word's length, and above 1.
// Ties go to the first.
std::string Closest(std::string_view word, const std::vector<std::string>& candidates);

// "a, b, c"
std::string JoinedText(const std::vector<std::string>& texts, const char* separator = ", ");

}  // namespace kgrpo
#endif
