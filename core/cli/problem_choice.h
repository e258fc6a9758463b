// Finds the problem that --problem names: a folder, or the name of one of several problems. Used by the commands that
// have the option.
#ifndef KGRPO_CLI_PROBLEM_CHOICE_H
#define KGRPO_CLI_PROBLEM_CHOICE_H

#include <string>
#include <vector>

namespace kgrpo::cli {

// What the user wrote it as: --problem, or a command's own argument, which may be a kernel's file too.
enum class ProblemArgument { kOption, kTarget };

// True if `given` is a folder, whose path needs no list of problems.
bool NamesFolder(const std::string& given);

// The folder that `given` names: itself, without slashes at its end, or the one of `folders` with that name.
// `source` says in errors whose those are: "configs/seed.yaml", "problems/". Throws kgrpo::Error with the names that
// there are, and the closest, where it is none of them.
std::string ProblemFolder(const std::string& given, const std::vector<std::string>& folders, const std::string& source,
                          ProblemArgument argument);

// The same, of the problems that come with kgrpo.
std::string ShippedProblem(const std::string& given, ProblemArgument argument);

}  // namespace kgrpo::cli
#endif
