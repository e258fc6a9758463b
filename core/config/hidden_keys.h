// Keeps keys of services out of messages: one that was written into a file, at whatever place, must not go on to a
// terminal, a log or somebody's report. Used for all that is shown of a file's text: by config/diagnostic.cc,
// config/node.cc, cli/main.cc, cli/check_command.cc and loop/run.cc.
#ifndef KGRPO_CONFIG_HIDDEN_KEYS_H
#define KGRPO_CONFIG_HIDDEN_KEYS_H

#include <string>

namespace kgrpo {

// Replaces by "[hidden]" what looks like a key, and what a variable of the environment holds whose name says that it is
// one (OPENAI_API_KEY, HF_TOKEN). Returns whether there was any, or one that was hidden before.
bool HideKeys(std::string* text);

}  // namespace kgrpo
#endif
