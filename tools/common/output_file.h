// Checks the output file of a command, before work that may take a minute. Used by eval, report and export.
#ifndef KGRPO_TOOLS_COMMON_OUTPUT_FILE_H
#define KGRPO_TOOLS_COMMON_OUTPUT_FILE_H

#include <filesystem>
#include <string>

namespace kgrpo::cli {

// Throws kgrpo::Error where `file` is a folder, or is in one that does not exist. `option`: the option that names it,
// "--report"; `example`: a file name to suggest, "report.html".
void RequireWritable(const std::string& option, const std::string& file, const std::string& example);

// Throws unless the folder is absent or empty. `option`: the option that names it.
void RequireEmpty(const std::string& option, const std::filesystem::path& folder);

}  // namespace kgrpo::cli
#endif
