// The difference of two texts, as `diff -u` writes it. Used by optimize_command.cc.
#ifndef KGRPO_CLI_LINE_DIFF_H
#define KGRPO_CLI_LINE_DIFF_H

#include <string>

namespace kgrpo::cli {

// A unified diff with three lines of context that `patch` applies; empty for equal texts. Time and memory grow with the
// product of the numbers of lines that lie between the first and the last change.
std::string UnifiedDiff(const std::string& from, const std::string& to, const std::string& from_name,
                        const std::string& to_name);

}  // namespace kgrpo::cli
#endif
