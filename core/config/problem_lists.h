// The lists problems.train and problems.heldout of a pipeline file: patterns become folders, and what is wrong with
// them is reported. Used by load.cc.
#ifndef KGRPO_CONFIG_PROBLEM_LISTS_H
#define KGRPO_CONFIG_PROBLEM_LISTS_H

#include <vector>

#include "config/diagnostic.h"
#include "config/node.h"

namespace kgrpo {

// Puts folders in the place of patterns. A folder is in one list alone: named outright in one, it is not meant by the
// other's patterns. Names of folders differ, and a list that is needed is not empty. Mistakes are appended to
// *diagnostics, which holds those of the file so far.
void ExpandProblemLists(Node* root, bool needs_train, bool needs_heldout, std::vector<Diagnostic>* diagnostics);

}  // namespace kgrpo
#endif
