// Part of schema.h: the keywords of an options schema, and errors in a schema.
#include <kgrpo/sdk/error.h>
#include <kgrpo/support/closest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <regex>

#include "config/schema.h"
#include "config/schema_internal.h"

namespace kgrpo {
namespace {

bool IsAny(const Schema&) { return true; }
bool IsText(const Schema& value) { return value.is_string(); }
bool IsFlag(const Schema& value) { return value.is_boolean(); }
bool IsNumber(const Schema& value) { return value.is_number(); }
bool IsCount(const Schema& value) { return value.is_number_unsigned(); }
bool IsSchema(const Schema& value) { return value.is_object() || value.is_boolean(); }
bool IsSchemas(const Schema& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, IsSchema);
}
bool IsItems(const Schema& value) { return IsSchema(value) || IsSchemas(value); }
bool IsNamedSchemas(const Schema& value) { return value.is_object() && std::ranges::all_of(value, IsSchema); }
bool IsList(const Schema& value) { return value.is_array() && !value.empty(); }
bool IsTexts(const Schema& value) { return value.is_array() && std::ranges::all_of(value, IsText); }
bool IsExpression(const Schema& value) {
  try {
    return IsText(value) && (std::regex(value.get<std::string>(), std::regex::ECMAScript), true);
  } catch (const std::regex_error&) {
    return false;
  }
}
bool IsTypeName(const Schema& value) {
  static constexpr std::array kTypes = {"null", "boolean", "integer", "number", "string", "array", "object"};
  return IsText(value) && std::ranges::find(kTypes, value.get<std::string>()) != kTypes.end();
}
bool IsType(const Schema& value) {
  return IsTypeName(value) || (IsList(value) && std::ranges::all_of(value, IsTypeName));
}

// The keywords of draft 7 that schema.cc checks, and those that mark an option for a command (docs/plugins.md).
struct Keyword {
  const char* name;
  bool (*fits)(const Schema& value);
};
constexpr Keyword kKeywords[] = {{"$schema", IsText},
                                 {"$id", IsText},
                                 {"$ref", IsText},
                                 {"$comment", IsText},
                                 {"title", IsText},
                                 {"description", IsText},
                                 {"default", IsAny},
                                 {"examples", IsList},
                                 {"type", IsType},
                                 {"enum", IsList},
                                 {"const", IsAny},
                                 {"multipleOf", IsNumber},
                                 {"minimum", IsNumber},
                                 {"maximum", IsNumber},
                                 {"exclusiveMinimum", IsNumber},
                                 {"exclusiveMaximum", IsNumber},
                                 {"minLength", IsCount},
                                 {"maxLength", IsCount},
                                 {"pattern", IsExpression},
                                 {"items", IsItems},
                                 {"minItems", IsCount},
                                 {"maxItems", IsCount},
                                 {"uniqueItems", IsFlag},
                                 {"minProperties", IsCount},
                                 {"required", IsTexts},
                                 {"properties", IsNamedSchemas},
                                 {"additionalProperties", IsSchema},
                                 {"allOf", IsSchemas},
                                 {"anyOf", IsSchemas},
                                 {"oneOf", IsSchemas},
                                 {"definitions", IsNamedSchemas},
                                 {"x-seed", IsFlag},
                                 {"x-profile", IsAny},
                                 {kRemovedKeyword, IsNamedSchemas},
                                 {kReadsKeyword, IsText},
                                 {kMayChangeKeyword, IsFlag}};

// Calls visit(schema, path) for the schema and those within it, until one returns false.
using Visit = std::function<bool(const Schema& schema, const std::string& path)>;
void Walk(const Schema& schema, const std::string& path, const Visit& visit) {
  if (!schema.is_object() || !visit(schema, path)) return;
  for (const char* keyword : {"properties", "definitions"}) {
    if (!schema.contains(keyword)) continue;
    for (const auto& [key, inner] : schema[keyword].items()) Walk(inner, JoinPath(path, key), visit);
  }
  for (const char* keyword : {"allOf", "anyOf", "oneOf", "items"}) {
    if (!schema.contains(keyword)) continue;
    const std::string place = std::string_view(keyword) == "items" ? path + "[]" : path;
    if (schema[keyword].is_object()) Walk(schema[keyword], place, visit);
    if (!schema[keyword].is_array()) continue;
    for (const Schema& inner : schema[keyword]) Walk(inner, place, visit);
  }
  if (schema.contains("additionalProperties")) Walk(schema["additionalProperties"], path, visit);
}

std::string At(const std::string& path, const std::string& message) {
  return path.empty() ? message : path + ": " + message;
}

// Returns a message for each keyword that is unknown or has an impossible value.
std::vector<std::string> UnusableKeywords(const Schema& root) {
  std::vector<std::string> mistakes;
  Walk(root, "", [&](const Schema& schema, const std::string& path) {
    const size_t before = mistakes.size();
    for (const auto& [name, value] : schema.items()) {
      const Keyword* known = std::ranges::find(kKeywords, name, [](const Keyword& keyword) { return keyword.name; });
      if (known == std::end(kKeywords)) {
        std::vector<std::string> names;
        for (const Keyword& keyword : kKeywords) names.emplace_back(keyword.name);
        const std::string closest = Closest(name, names);
        mistakes.push_back(At(
            path, "unknown keyword \"" + name + "\"" + (closest.empty() ? "" : "; did you mean \"" + closest + "\"?")));
      } else if (!known->fits(value)) {
        mistakes.push_back(At(path, "\"" + name + "\" cannot be " + value.dump()));
      }
    }
    return mistakes.size() == before;
  });
  return mistakes;
}

}  // namespace

void RequireUsableSchema(const Schema& schema) {
  if (!schema.is_object() || schema.value("type", Schema()) != "object")
    throw Error(KGRPO_ERROR_INVALID, "it does not describe a mapping (\"type\": \"object\")");
  if (const std::vector<std::string> mistakes = UnusableKeywords(schema); !mistakes.empty())
    throw Error(KGRPO_ERROR_INVALID,
                mistakes.front() + " (docs/plugins.md lists the keywords of JSON Schema that count)");
}

std::vector<std::string> FindSchemaMistakes(const Schema& root) {
  if (!root.is_object() || root.value("type", Schema()) != "object")
    return {"an options schema describes a mapping: {\"type\": \"object\", \"properties\": {...}}"};
  std::vector<std::string> mistakes = UnusableKeywords(root);
  if (!mistakes.empty()) return mistakes;
  Walk(root, "", [&](const Schema& schema, const std::string& path) {
    for (const char* keyword : {"default", "x-profile"}) {  // keywords whose value is a value of the option
      if (!schema.contains(keyword)) continue;
      Schema alone = schema;
      if (root.contains("definitions")) alone["definitions"] = root["definitions"];
      std::vector<Diagnostic> objections;
      CheckAgainstSchema(Node::FromJson(schema[keyword], {}), alone, "", &objections);
      if (!objections.empty())
        mistakes.push_back(
            At(path, std::string("the ") + keyword + " is refused by its own schema: " + objections.front().message));
    }
    if (!schema.contains("properties")) return true;
    if (schema.value("additionalProperties", Schema(true)) == Schema(true)) {
      mistakes.push_back(
          At(path, "\"additionalProperties\" is not false: misspelt options would be ignored in silence"));
    }
    for (const auto& [key, property] : schema["properties"].items()) {
      const Schema& resolved = ResolveReference(property, root);
      if (resolved.is_object() && !resolved.contains("description") && !property.contains("description"))
        mistakes.push_back(At(JoinPath(path, key), "has no description"));
    }
    return true;
  });
  return mistakes;
}

}  // namespace kgrpo
