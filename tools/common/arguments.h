// Arguments of commands that name files and folders: the problem of --problem (a folder, or the name of one of
// several), and output files, which are checked before work that may take a minute. Used by the programs in tools/.
#ifndef KGRPO_TOOLS_COMMON_ARGUMENTS_H
#define KGRPO_TOOLS_COMMON_ARGUMENTS_H

#include <filesystem>
#include <string>
#include <vector>

#include "config/pipeline.h"

namespace kgrpo::cli {

// How the user gave it: by --problem, or as a command's argument, which may also be a kernel's file.
enum class ProblemArgument { kOption, kTarget };

// True if `given` is a folder, whose path needs no list of problems.
bool IsFolder(const std::string& given);

// Returns the folder that `given` names: itself, without slashes at its end, or the one of `folders` with that name.
// `source` names the origin of `folders` in errors: "configs/seed.yaml", "problems/". Throws kgrpo::Error with all
// names, and the closest one, where `given` matches none.
std::string ProblemFolder(const std::string& given, const std::vector<std::string>& folders, const std::string& source,
                          ProblemArgument argument);

// The same, of the problems that come with kgrpo.
std::string ShippedProblem(const std::string& given, ProblemArgument argument);

// The folder that --problem names among the pipeline's problems; without a file, among those that come with kgrpo.
std::string PipelineProblem(const std::string& given, const std::string& file, const PipelineConfig& config);

// Throws kgrpo::Error where `file` is a folder, or is in one that does not exist. `option`: the option that names it,
// "--report"; `example`: a file name to suggest, "report.html".
void RequireWritable(const std::string& option, const std::string& file, const std::string& example);

// Throws unless the folder is absent or empty. `option`: the option that names it.
void RequireEmpty(const std::string& option, const std::filesystem::path& folder);

}  // namespace kgrpo::cli
#endif
