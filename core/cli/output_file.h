// Checks the file that a command is to write, before work that may take a minute. Used by eval, report and export.
#ifndef KGRPO_CLI_OUTPUT_FILE_H
#define KGRPO_CLI_OUTPUT_FILE_H

#include <string>

namespace kgrpo::cli {

// Throws kgrpo::Error where `file` is a folder, or is in one that does not exist. `option`: how the user named it,
// "--report"; `example`: a file's name to propose, "report.html".
void RequireWritable(const std::string& option, const std::string& file, const std::string& example);

}  // namespace kgrpo::cli
#endif
