// Writes a resolved pipeline as YAML that a person reads and load.h reads back to the same values. Used by read.cc.
#ifndef KGRPO_CONFIG_EMIT_H
#define KGRPO_CONFIG_EMIT_H

#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo {

// Block style, keys in the given order; texts of several lines as literal blocks; short lists of scalars on one line.
std::string EmitYaml(const nlohmann::ordered_json& value);

}  // namespace kgrpo
#endif
