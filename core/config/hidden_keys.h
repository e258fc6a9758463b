// Keeps API keys out of messages: a key that was written anywhere into a file must not reach a terminal, a log or a
// report. Used for all text of a file that is shown: by config/diagnostic.cc,
// config/node.cc, cli/main.cc, cli/check_command.cc and loop/run.cc; merge.cc refuses a file that holds one, since
// its text would be copied into a run's resolved.yaml, its database and its prompts.
#ifndef KGRPO_CONFIG_HIDDEN_KEYS_H
#define KGRPO_CONFIG_HIDDEN_KEYS_H

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostic.h"
#include "config/node.h"

namespace kgrpo {

// Replaces with "[hidden]" every text that looks like a key, and the value of every environment variable that is named
// like one (OPENAI_API_KEY, HF_TOKEN). Returns true if the text now contains "[hidden]".
bool HideKeys(std::string* text);

// Returns the offset of the first text that is certainly a key: it has a key's prefix and length, or is the value of
// such a variable, and has 16 letters and digits in a row with a digit among them.
std::optional<size_t> FindKey(std::string_view text);

// Appends a mistake for each scalar and each key of a mapping, at any depth, that holds what looks like a service's key
// (hidden_keys.h: FindKey), at its place in the file. `path` is the node's own. No message repeats it.
void RefuseKeys(const Node& node, const std::string& path, std::vector<Diagnostic>* diagnostics);

// The same of one text at one place: a path of --set.
void RefuseKeys(const std::string& text, const Position& at, const std::string& path,
                std::vector<Diagnostic>* diagnostics);

}  // namespace kgrpo
#endif
