// Checks JSON against a JSON Schema as kgrpo-host checks the options of plugins: with the same keywords
// (docs/plugins.md) and messages. Used by plugins whose options are those of another program; they link kgrpo_schema.
#ifndef KGRPO_SUPPORT_JSON_SCHEMA_H
#define KGRPO_SUPPORT_JSON_SCHEMA_H

#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo {

// Adds the schema's defaults to `value`, whose path is `path`. Throws Error(KGRPO_ERROR_INVALID) with a line for each
// error ("options.cap: expected a number, found \"eight\""), and if the schema itself cannot be used.
void FillDefaultsAndCheck(const nlohmann::ordered_json& schema, const std::string& path, nlohmann::json* value);

}  // namespace kgrpo

#endif
