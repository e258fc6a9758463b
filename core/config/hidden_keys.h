// Keeps API keys out of messages: a key that was written anywhere into a file must not reach a terminal, a log or a
// report. Used for all text of a file that is shown: by config/diagnostic.cc,
// config/node.cc, cli/main.cc, cli/check_command.cc and loop/run.cc; refuse_keys.h refuses a file that holds one.
#ifndef KGRPO_CONFIG_HIDDEN_KEYS_H
#define KGRPO_CONFIG_HIDDEN_KEYS_H

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kgrpo {

// Replaces by "[hidden]" what looks like a key, and what a variable of the environment holds whose name says that it is
// one (OPENAI_API_KEY, HF_TOKEN). Returns whether there was any, or one that was hidden before.
bool HideKeys(std::string* text);

// The offset of the first text that can be nothing but a key: by its prefix and its length, as above, and with 16
// letters and digits in a row, or as such a variable's value that has as many.
std::optional<size_t> FindKey(std::string_view text);

}  // namespace kgrpo
#endif
