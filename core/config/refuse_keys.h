// Refuses API keys in a pipeline file or a --set: their text would be copied into a run's resolved.yaml, its database
// and its prompts. Used by merge.cc, for everything it reads.
#ifndef KGRPO_CONFIG_REFUSE_KEYS_H
#define KGRPO_CONFIG_REFUSE_KEYS_H

#include <string>
#include <vector>

#include "config/diagnostic.h"
#include "config/node.h"

namespace kgrpo {

// Appends a mistake for each scalar and each key of a mapping, at any depth, that holds what looks like a service's key
// (hidden_keys.h: FindKey), at its place in the file. `path` is the node's own. No message repeats it.
void RefuseKeys(const Node& node, const std::string& path, std::vector<Diagnostic>* diagnostics);

// The same of one text at one place: a path of --set.
void RefuseKeys(const std::string& text, const Position& at, const std::string& path,
                std::vector<Diagnostic>* diagnostics);

}  // namespace kgrpo
#endif
