// Writes a resolved pipeline as YAML that a person reads and load.h reads back to the same values. Used by read.cc.
#ifndef KGRPO_CONFIG_EMIT_H
#define KGRPO_CONFIG_EMIT_H

#include <functional>
#include <string>

#include "config/node.h"

#include <nlohmann/json.hpp>

namespace kgrpo {

// Block style, keys in the given order; texts of several lines as literal blocks; short lists of scalars on one line.
std::string EmitYaml(const nlohmann::ordered_json& value);

// Describes a value's origin, given its path and its position; empty: no description.
using OriginText = std::function<std::string(const std::string& path, const Position& at)>;

// The same of a mapping, with the origin of each value as a comment behind it.
std::string EmitYamlWithOrigins(const Node& root, const OriginText& origin);

}  // namespace kgrpo
#endif
