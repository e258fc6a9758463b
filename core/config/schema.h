// JSON Schema (draft 7) for YAML: valijson decides validity, this code writes messages and positions. Used by load.cc
// for the host's own keys and for each plugin's options, and by `plugins validate` for the schemas themselves.
//
// Messages are written for: type, enum, const, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf,
// minLength, maxLength, pattern, required, properties, additionalProperties, items, minItems, maxItems, uniqueItems,
// minProperties, anyOf, oneOf, allOf, and $ref to
// "#/definitions/...". What only other keywords refuse is reported in valijson's words.
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

using Schema = nlohmann::ordered_json;  // in the author's order, which is the order of tables and resolved files

// Appends every way in which `node` breaks the schema. `path` is the node's own path: "coder.options".
void CheckAgainstSchema(const Node& node, const Schema& schema, const std::string& path,
                        std::vector<Diagnostic>* diagnostics);

// Adds each absent key that has a `default`, at every depth that is present, and puts keys in the schema's order.
void FillDefaults(const Schema& schema, Node* node);

// True if the value satisfies the schema, by valijson alone; *reason, which may be NULL, receives its first objection
// and *place the path to it as valijson writes it. Throws kgrpo::Error when the schema itself is malformed.
bool Satisfies(const nlohmann::json& value, const Schema& schema, std::string* reason, std::vector<std::string>* place);

// Throws kgrpo::Error when options cannot be checked against the schema: it is not one of draft 7, or does not describe
// a mapping.
void RequireUsableSchema(const Schema& schema);

// The mistakes in an options schema: not a draft 7 schema, keywords nobody knows, an option without description, a
// default that its own schema refuses, unknown options let through. Empty when it is fine.
std::vector<std::string> FindSchemaMistakes(const Schema& schema);

// "an integer >= 1", `one of "a", "b"`, "a list or a mapping": what a schema wants.
std::string DescribeExpected(const Schema& schema, const Schema& root);

// "loop" + "batch_size" = "loop.batch_size"
std::string JoinPath(const std::string& path, const std::string& key);

}  // namespace kgrpo
#endif
