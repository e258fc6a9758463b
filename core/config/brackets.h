// Finds the '{' or '[' that is open where yaml-cpp gives up, which may be many lines further. Used by config/node.cc.
#ifndef KGRPO_CONFIG_BRACKETS_H
#define KGRPO_CONFIG_BRACKETS_H

#include <yaml-cpp/mark.h>

#include <optional>
#include <string>

namespace kgrpo {

// Returns the innermost open bracket; nothing if none is open. Does not throw.
std::optional<YAML::Mark> OpenBracket(const std::string& yaml);

}  // namespace kgrpo
#endif
