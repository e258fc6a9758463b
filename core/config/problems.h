// From the patterns under `problems:` to folders. Used by problem_lists.cc and by `kgrpo-host problems`.
#ifndef KGRPO_CONFIG_PROBLEMS_H
#define KGRPO_CONFIG_PROBLEMS_H

#include <string>
#include <vector>

namespace kgrpo {

// True if the text holds *, ? or [.
bool IsPattern(const std::string& text);

// The folders that a pattern matches (hidden ones only if it says so), or the folder itself; relative to the working
// directory, sorted, without "./" and trailing slashes. Empty when there are none. Throws kgrpo::Error when a folder on
// the way cannot be read.
std::vector<std::string> ExpandFolders(const std::string& pattern);

}  // namespace kgrpo
#endif
