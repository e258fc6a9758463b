// The part of schema.h that is valijson's: the judgement of values, and of schemas. Apart from the rest because
// valijson is all headers and slow to compile.
#define VALIJSON_USE_EXCEPTIONS 1  // without it valijson ends the process at a malformed schema
#include <kgrpo/sdk/error.h>
#include <kgrpo/support/closest.h>

#include <algorithm>
#include <exception>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "config/schema.h"
#include "config/schema_internal.h"

namespace kgrpo {
namespace {

// Fills *compiled; throws kgrpo::Error when the schema is malformed.
void Compile(const nlohmann::json& schema, valijson::Schema* compiled) {
  try {
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), *compiled);
  } catch (const std::exception& error) {
    throw Error(KGRPO_ERROR_INVALID, std::string("not a JSON Schema (draft 7): ") + error.what());
  }
}

// valijson reads integers as signed ones: larger ones are lowered to the largest it can read.
void NarrowIntegers(nlohmann::json* value) {
  if (value->is_structured()) {
    for (nlohmann::json& inner : *value) NarrowIntegers(&inner);
  } else if (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX}) {
    *value = INT64_MAX;
  }
}

// Draft 7's keywords, less those that make no sense in an options schema, plus those that mark an option for a command
// (docs/plugins.md).
const std::set<std::string>& KnownKeywords() {
  static const std::set<std::string> kKeywords = {"$schema",
                                                  "$id",
                                                  "$ref",
                                                  "$comment",
                                                  "title",
                                                  "description",
                                                  "default",
                                                  "examples",
                                                  "type",
                                                  "enum",
                                                  "const",
                                                  "multipleOf",
                                                  "maximum",
                                                  "exclusiveMaximum",
                                                  "minimum",
                                                  "exclusiveMinimum",
                                                  "maxLength",
                                                  "minLength",
                                                  "pattern",
                                                  "format",
                                                  "items",
                                                  "additionalItems",
                                                  "maxItems",
                                                  "minItems",
                                                  "uniqueItems",
                                                  "contains",
                                                  "maxProperties",
                                                  "minProperties",
                                                  "required",
                                                  "properties",
                                                  "patternProperties",
                                                  "additionalProperties",
                                                  "dependencies",
                                                  "propertyNames",
                                                  "if",
                                                  "then",
                                                  "else",
                                                  "allOf",
                                                  "anyOf",
                                                  "oneOf",
                                                  "not",
                                                  "definitions",
                                                  "x-seed",
                                                  "x-profile",
                                                  kMayChangeKeyword};
  return kKeywords;
}

bool IsTypeName(const Schema& type) {
  static const std::set<std::string> kTypes = {"null", "boolean", "integer", "number", "string", "array", "object"};
  return type.is_string() && kTypes.contains(type.get<std::string>());
}

class Linter {
 public:
  Linter(const Schema& root, std::vector<std::string>* mistakes) : root_(root), mistakes_(mistakes) {}

  void Lint(const Schema& schema, const std::string& path) {
    if (schema.is_boolean()) return;
    if (!schema.is_object()) return Report(path, "a schema must be an object or a boolean, found " + schema.dump());
    for (const auto& [keyword, value] : schema.items()) {
      if (!KnownKeywords().contains(keyword)) {
        const std::vector<std::string> known(KnownKeywords().begin(), KnownKeywords().end());
        const std::string closest = Closest(keyword, known);
        Report(path,
               "unknown keyword \"" + keyword + "\"" + (closest.empty() ? "" : "; did you mean \"" + closest + "\"?"));
      }
    }
    if (schema.contains("type")) {
      const Schema& type = schema["type"];
      const bool fine = type.is_array() ? std::all_of(type.begin(), type.end(), IsTypeName) : IsTypeName(type);
      if (!fine) Report(path, "unknown type " + type.dump());
    }
    if (schema.contains("properties") && schema["properties"].is_object()) {
      if (schema.value("additionalProperties", Schema(true)) == Schema(true)) {
        Report(path, "\"additionalProperties\" is not false: misspelt options would be ignored in silence");
      }
      for (const auto& [key, property] : schema["properties"].items()) {
        const std::string inner = JoinPath(path, key);
        const Schema& resolved = ResolveReference(property, root_);
        if (resolved.is_object() && !resolved.contains("description") && !property.contains("description")) {
          Report(inner, "has no description");
        }
        Lint(property, inner);
      }
    }
    for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
      if (!schema.contains(keyword) || !schema[keyword].is_array()) continue;
      for (const Schema& branch : schema[keyword]) Lint(branch, path);
    }
    if (schema.contains("items") && schema["items"].is_object()) Lint(schema["items"], path + "[]");
  }

  // Needs a schema that compiles.
  void LintDefaults(const Schema& unresolved, const std::string& path) {
    const Schema& schema = ResolveReference(unresolved, root_);
    if (!schema.is_object()) return;
    for (const char* keyword : {"default", "x-profile"}) {  // whose value is one of the option
      if (!schema.contains(keyword)) continue;
      Schema alone = schema;
      if (root_.contains("definitions")) alone["definitions"] = root_["definitions"];
      std::vector<Diagnostic> objections;
      CheckAgainstSchema(Node::FromJson(schema[keyword], {}), alone, "", &objections);
      if (!objections.empty())
        Report(path, std::string("the ") + keyword + " is refused by its own schema: " + objections.front().message);
    }
    if (!schema.contains("properties")) return;
    for (const auto& [key, property] : schema["properties"].items()) LintDefaults(property, JoinPath(path, key));
  }

 private:
  void Report(const std::string& path, const std::string& message) {
    mistakes_->push_back(path.empty() ? message : path + ": " + message);
  }

  const Schema& root_;
  std::vector<std::string>* mistakes_;
};

}  // namespace

bool Satisfies(const nlohmann::json& value, const Schema& schema, std::string* reason,
               std::vector<std::string>* place) {
  valijson::Schema compiled;
  Compile(nlohmann::json(schema), &compiled);
  nlohmann::json narrowed = value;
  NarrowIntegers(&narrowed);
  valijson::ValidationResults results;
  valijson::Validator validator;
  if (validator.validate(compiled, valijson::adapters::NlohmannJsonAdapter(narrowed), &results)) return true;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {  // the first is the outermost context; the deepest says most
    if (place != nullptr && error.context.size() >= place->size()) *place = error.context;
    if (reason != nullptr) *reason = error.description;
  }
  return false;
}

void RequireUsableSchema(const Schema& schema) {
  if (!schema.is_object() || schema.value("type", Schema()) != "object") {
    throw Error(KGRPO_ERROR_INVALID, "it does not describe a mapping (\"type\": \"object\")");
  }
  valijson::Schema compiled;
  Compile(nlohmann::json(schema), &compiled);
}

std::vector<std::string> FindSchemaMistakes(const Schema& schema) {
  std::vector<std::string> mistakes;
  if (!schema.is_object() || schema.value("type", Schema()) != "object") {
    return {"an options schema describes a mapping: {\"type\": \"object\", \"properties\": {...}}"};
  }
  Linter linter(schema, &mistakes);
  linter.Lint(schema, "");
  try {
    valijson::Schema compiled;
    Compile(nlohmann::json(schema), &compiled);
    linter.LintDefaults(schema, "");
  } catch (const std::exception& error) {
    mistakes.push_back(error.what());
  }
  return mistakes;
}

}  // namespace kgrpo
