// JSON Schema (draft 7) for YAML, with messages and positions. Used by load.cc for the host's own keys and for each
// plugin's options, and by `plugins validate` for the schemas themselves. A schema has keywords of a part of draft 7
// (schema_keywords.cc), and $ref to "#/definitions/..." only.
#ifndef KGRPO_CONFIG_SCHEMA_H
#define KGRPO_CONFIG_SCHEMA_H

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/diagnostic.h"
#include "config/node.h"

namespace kgrpo {

// The keyword by which a plugin marks an option that a resumed run may change; docs/plugins.md.
inline constexpr const char* kMayChangeKeyword = "x-resume";

// The keyword of an option that names what the run reads: "content", or "place" where only its deletion matters.
inline constexpr const char* kReadsKeyword = "x-reads";

// The keyword of a mapping for options of earlier versions: {KEY: {"const": VALUE, "description": REASON}}. VALUE is
// in force now. Only the resolved.yaml of an earlier run may have the key, with that value.
inline constexpr const char* kRemovedKeyword = "x-removed";

using Schema = nlohmann::ordered_json;  // in the author's order, which is the order of tables and resolved files

// Appends every way in which `node` breaks the schema. `path` is the node's own path: "coder.options".
void CheckAgainstSchema(const Node& node, const Schema& schema, const std::string& path,
                        std::vector<Diagnostic>* diagnostics);

// Adds each absent key that has a `default`, at every depth that is present, and puts keys in the schema's order.
// Erases removed keys; with `removed` it also appends all that the schema lists for these mappings. `path` is the
// node's own.
void FillDefaults(const Schema& schema, Node* node, const std::string& path = "",
                  std::vector<RemovedKey>* removed = nullptr);

// True if the value has no way in which it breaks the schema, which RequireUsableSchema accepts.
bool Satisfies(const nlohmann::json& value, const Schema& schema);

// Throws kgrpo::Error when options cannot be checked against the schema: it does not describe a mapping, or has a
// keyword that is unknown or has an impossible value.
void RequireUsableSchema(const Schema& schema);

// The mistakes in an options schema: those of RequireUsableSchema, an option without description, a default that its
// own schema refuses, unknown options let through. Empty when it is fine.
std::vector<std::string> FindSchemaMistakes(const Schema& schema);

// "an integer >= 1", `one of "a", "b"`, "a list or a mapping": what a schema wants.
std::string DescribeExpected(const Schema& schema, const Schema& root);

// "loop" + "batch_size" = "loop.batch_size"
std::string JoinPath(const std::string& path, const std::string& key);

}  // namespace kgrpo
#endif
