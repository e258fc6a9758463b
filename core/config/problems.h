// From the patterns under `problems:`, and from arguments of commands, to folders. Used by load.cc and the
// commands.
#ifndef KGRPO_CONFIG_PROBLEMS_H
#define KGRPO_CONFIG_PROBLEMS_H

#include <string>
#include <vector>

#include "config/diagnostic.h"
#include "config/node.h"

namespace kgrpo {

// True if the text holds *, ? or [.
bool IsPattern(const std::string& text);

// The folders that a pattern matches (hidden ones only if it says so), or the folder itself; relative to the working
// directory, sorted, without "./" and trailing slashes. Empty when there are none. Throws kgrpo::Error when a folder on
// the way cannot be read.
std::vector<std::string> ExpandFolders(const std::string& pattern);

// True if the folder holds a problem.yaml. The problems of other formats hold none: only their evaluator knows them.
bool HoldsProblemYaml(const std::string& folder);

// The problem folders that an argument names: a folder, every problem folder in it, or the same for each match of a
// pattern; a pattern that matches problems leaves out its other matches. A folder with neither a problem.yaml nor
// problem folders in it is returned as it is, for the evaluator to open. Throws kgrpo::Error where `given` names no
// folder.
std::vector<std::string> ProblemFolders(const std::string& given);

// Replaces patterns with folders. A folder may be in one list only; the patterns of a list do not match a folder that
// the other list names outright. Equal folder names and an empty list that is needed are mistakes. Mistakes are
// appended to *diagnostics, which holds those of the file so far.
void ExpandProblemLists(Node* root, bool needs_train, bool needs_heldout, std::vector<Diagnostic>* diagnostics);

}  // namespace kgrpo
#endif
