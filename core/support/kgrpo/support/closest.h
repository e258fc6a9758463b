// What was probably meant by a misspelt name. Used by the host's messages and by plugins.
#ifndef KGRPO_SUPPORT_CLOSEST_H
#define KGRPO_SUPPORT_CLOSEST_H

#include <string>
#include <string_view>
#include <vector>

namespace kgrpo {

// The candidate nearest to `word` by edit distance (insertions, deletions, replacements, swaps of neighbours; upper and
// lower case are the same), if it is near enough to be what was meant; else empty. Ties go to the first.
std::string Closest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace kgrpo
#endif
