// The lists problems.train and problems.heldout of a pipeline file: patterns become folders, and what is wrong with
// them is reported. Used by load.cc.
#ifndef KGRPO_CONFIG_PROBLEM_LISTS_H
#define KGRPO_CONFIG_PROBLEM_LISTS_H

#include <vector>

#include "config/diagnostic.h"
#include "config/node.h"

namespace kgrpo {

// Replaces patterns with folders. A folder may be in one list only; the patterns of a list do not match a folder that
// the other list names outright. Equal folder names and an empty list that is needed are mistakes. Mistakes are
// appended to *diagnostics, which holds those of the file so far.
void ExpandProblemLists(Node* root, bool needs_train, bool needs_heldout, std::vector<Diagnostic>* diagnostics);

}  // namespace kgrpo
#endif
