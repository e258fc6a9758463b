// Finds the problem that --problem names: a folder, or the name of one of several problems. Used by the commands that
// have the option.
#ifndef KGRPO_TOOLS_COMMON_PROBLEM_CHOICE_H
#define KGRPO_TOOLS_COMMON_PROBLEM_CHOICE_H

#include "config/pipeline.h"

#include <string>
#include <vector>

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

}  // namespace kgrpo::cli
#endif
