// From the file on the command line to one tree: `extends` followed, `--set` applied. Used by load.cc.
#ifndef KGRPO_CONFIG_MERGE_H
#define KGRPO_CONFIG_MERGE_H

#include <string>
#include <vector>

#include "config/diagnostic.h"
#include "config/node.h"

namespace kgrpo {

// Reads `file` and what it extends. `extends: base.yaml` names a file relative to the one that says it. Mappings are
// merged key by key, the extending file's values winning; lists and scalars are replaced. Where the extending file
// names another `plugin`, the base's `options` beside it are dropped: they were the other plugin's. A key of the
// extending file that is a path, as --set takes it, changes that value alone: `trainer[0].steps: 20`. The key `extends`
// is gone from the result. Mistakes are appended to *diagnostics. *files receives every file read, the first one first.
Node ReadWithBases(const std::string& file, std::vector<std::string>* files, std::vector<Diagnostic>* diagnostics);

// Applies `a.b=c` or `a[0].b=c` (also `a.0.b=c`): everything after the first "=" is read as YAML. Mappings that are
// missing on the way are made; of a list, existing items can be changed. Later settings win; those that choose a plugin
// go first, whatever the order, and drop the former plugin's options. Returns the paths that were set: "a[0].b".
std::vector<std::string> ApplySettings(const std::vector<std::string>& settings, Node* root,
                                       std::vector<Diagnostic>* diagnostics);

}  // namespace kgrpo
#endif
