// Replaces this process by another program. Used by commands whose work another program does.
#ifndef KGRPO_CLI_BECOME_PROGRAM_H
#define KGRPO_CLI_BECOME_PROGRAM_H

#include <string>
#include <vector>

namespace kgrpo::cli {

// Runs `words`, the first of which is a path or a name to search in PATH, in place of this process. Throws
// KGRPO_ERROR_UNAVAILABLE, with `advice` for the user, if that cannot be started.
[[noreturn]] void BecomeProgram(std::vector<std::string> words, const std::string& advice);

// The Python that the user chose by KGRPO_PYTHON, else python3 of PATH.
std::string ChosenPython();

}  // namespace kgrpo::cli
#endif
