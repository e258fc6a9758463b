// Functions shared by schema.cc, schema_words.cc and schema_keywords.cc.
#ifndef KGRPO_CONFIG_SCHEMA_INTERNAL_H
#define KGRPO_CONFIG_SCHEMA_INTERNAL_H

#include "config/schema.h"

namespace kgrpo {

// Follows `{"$ref": "#/definitions/x"}`; a reference that leads nowhere gives a schema that accepts everything.
const Schema& ResolveReference(const Schema& schema, const Schema& root);

// True if the value is of the JSON type that a schema's `type` names ("integer", "object", ...).
bool HasType(const Node& node, const std::string& type);

}  // namespace kgrpo
#endif
