#include "config/schema.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <string>
#include <utility>

#include <kgrpo/support/closest.h>
#include <kgrpo/support/json_schema.h>
#include "config/diagnostic.h"
#include "config/schema_internal.h"

namespace kgrpo {
namespace {

bool AcceptsTypeOf(const Schema& unresolved, const Schema& root, const Node& node) {
  const Schema& schema = ResolveReference(unresolved, root);
  if (!schema.is_object() || !schema.contains("type")) return true;
  const Schema& type = schema["type"];
  if (!type.is_array()) return HasType(node, type.get<std::string>());
  return std::any_of(type.begin(), type.end(),
                     [&](const Schema& one) { return HasType(node, one.get<std::string>()); });
}

// Walks a value and its schema side by side.
class Checker {
 public:
  Checker(const Schema& root, std::vector<Diagnostic>* diagnostics) : root_(root), diagnostics_(diagnostics) {}

  void Check(const Node& node, const Schema& unresolved, const std::string& path) {
    const Schema& schema = ResolveReference(unresolved, root_);
    if (schema.is_boolean() && !schema.get<bool>()) return Report(node.at, path, "nothing may be written here");
    if (!schema.is_object()) return;
    if (schema.contains("allOf")) {
      for (const Schema& branch : schema["allOf"]) Check(node, branch, path);
    }
    if (schema.contains("anyOf")) CheckAlternatives(node, schema, schema["anyOf"], false, path);
    if (schema.contains("oneOf")) CheckAlternatives(node, schema, schema["oneOf"], true, path);
    if (!AcceptsTypeOf(schema, root_, node)) return Expected(node, schema, path);
    if (schema.contains("enum") || schema.contains("const")) CheckChoice(node, schema, path);
    if (node.IsScalar() && node.scalar.is_number()) CheckNumber(node, schema, path);
    if (node.IsString()) CheckText(node, schema, path);
    if (node.IsList()) CheckList(node, schema, path);
    if (node.IsMapping()) CheckMapping(node, schema, path);
  }

 private:
  void Report(const Position& at, const std::string& path, std::string message, std::string suggestion = "") {
    diagnostics_->push_back({at, path, std::move(message), std::move(suggestion)});
  }

  void Expected(const Node& node, const Schema& schema, const std::string& path, std::string suggestion = "") {
    const std::string expected = DescribeExpected(schema, root_);
    const char* const remedy =
        node.IsMapping() && expected.starts_with("text") ? " (quote text that contains \": \")" : "";
    Report(node.at, path, "expected " + expected + ", found " + Describe(node) + remedy, std::move(suggestion));
  }

  void CheckAlternatives(const Node& node, const Schema& schema, const Schema& branches, bool exactly_one,
                         const std::string& path) {
    std::vector<std::vector<Diagnostic>> objections;
    std::vector<size_t> fitting;  // branches of the value's type
    size_t accepted = 0;
    for (const Schema& branch : branches) {
      std::vector<Diagnostic> found;
      Checker(root_, &found).Check(node, branch, path);
      accepted += found.empty();
      if (AcceptsTypeOf(branch, root_, node)) fitting.push_back(objections.size());
      objections.push_back(std::move(found));
    }
    if (accepted == 1 || (accepted > 1 && !exactly_one)) return;
    if (accepted > 1)
      return Report(node.at, path, "fits more than one of the forms that are allowed here: make clear which is meant");
    if (fitting.empty() || (fitting.size() > 1 && node.IsScalar())) return Expected(node, schema, path);
    const size_t nearest = *std::min_element(fitting.begin(), fitting.end(), [&](size_t a, size_t b) {
      return objections[a].size() < objections[b].size();
    });
    diagnostics_->insert(diagnostics_->end(), objections[nearest].begin(), objections[nearest].end());
  }

  void CheckChoice(const Node& node, const Schema& schema, const std::string& path) {
    const nlohmann::json value(node.ToJson());
    std::vector<std::string> words;
    const Schema choices = schema.contains("enum") ? schema["enum"] : Schema::array({schema["const"]});
    for (const Schema& choice : choices) {
      if (nlohmann::json(choice) == value) return;
      if (choice.is_string()) words.push_back(choice.get<std::string>());
    }
    Expected(node, schema, path, node.IsString() ? Closest(node.scalar.get<std::string>(), words) : "");
  }

  void CheckNumber(const Node& node, const Schema& schema, const std::string& path) {
    const double value = node.scalar.get<double>();
    const auto bound = [&](const char* keyword, double otherwise) {
      return schema.contains(keyword) ? schema[keyword].get<double>() : otherwise;
    };
    bool fits = value >= bound("minimum", -HUGE_VAL) && value <= bound("maximum", HUGE_VAL) &&
                value > bound("exclusiveMinimum", -HUGE_VAL) && value < bound("exclusiveMaximum", HUGE_VAL);
    if (schema.contains("multipleOf")) fits = fits && std::remainder(value, schema["multipleOf"].get<double>()) == 0;
    if (!fits) Expected(node, schema, path);
  }

  void CheckText(const Node& node, const Schema& schema, const std::string& path) {
    const std::string& text = node.scalar.get_ref<const std::string&>();
    const size_t length = CountCharacters(text);
    bool fits = length >= schema.value("minLength", size_t{0}) && length <= schema.value("maxLength", SIZE_MAX);
    if (schema.contains("pattern")) {
      fits = fits && std::regex_search(text, std::regex(schema["pattern"].get<std::string>(), std::regex::ECMAScript));
    }
    if (!fits) Expected(node, schema, path);
  }

  void CheckList(const Node& node, const Schema& schema, const std::string& path) {
    const size_t size = node.items.size();
    if (size < schema.value("minItems", size_t{0}) || size > schema.value("maxItems", SIZE_MAX)) {
      Report(node.at, path, "expected " + DescribeExpected(schema, root_) + ", found " + std::to_string(size));
    }
    for (size_t i = 0; i < size; ++i) {
      const std::string inner = path + "[" + std::to_string(i) + "]";
      if (schema.contains("items")) {
        const Schema& items = schema["items"];
        if (!items.is_array())
          Check(node.items[i], items, inner);
        else if (i < items.size())
          Check(node.items[i], items[i], inner);
      }
      if (schema.value("uniqueItems", false)) {
        const auto same = [&](const Node& other) {
          return nlohmann::json(other.ToJson()) == nlohmann::json(node.items[i].ToJson());
        };
        if (std::any_of(node.items.begin(), node.items.begin() + static_cast<std::ptrdiff_t>(i), same)) {
          Report(node.items[i].at, inner, Describe(node.items[i]) + " is in the list twice");
        }
      }
    }
  }

  void CheckMapping(const Node& node, const Schema& schema, const std::string& path) {
    const Schema none = Schema::object();
    const Schema& properties = schema.contains("properties") ? schema["properties"] : none;
    for (const Node::Member& member : node.members) {
      if (properties.contains(member.key)) {
        Check(member.value, properties[member.key], JoinPath(path, member.key));
      } else if (!schema.contains("additionalProperties")) {
        continue;
      } else if (schema["additionalProperties"].is_boolean()) {
        if (!schema["additionalProperties"].get<bool>()) ReportUnknownKey(member, schema, JoinPath(path, member.key));
      } else {
        Check(member.value, schema["additionalProperties"], JoinPath(path, member.key));
      }
    }
    if (schema.contains("required")) {
      for (const Schema& key : schema["required"]) {
        if (node.Find(key.get<std::string>()) != nullptr) continue;
        const Schema examples = properties.value(key.get<std::string>(), Schema::object()).value("examples", Schema());
        Report(node.at, path,
               "the key " + key.dump() + " is missing" +
                   (examples.empty() ? "" : "; example: " + key.get<std::string>() + ": " + examples[0].dump()));
      }
    }
    if (node.members.size() < schema.value("minProperties", size_t{0})) {
      Report(node.at, path,
             "expected at least " + schema["minProperties"].dump() + " keys, found " +
                 std::to_string(node.members.size()));
    }
  }

  void ReportUnknownKey(const Node::Member& member, const Schema& schema, const std::string& path) {
    const Schema none = Schema::object();
    if (const Schema& removed = schema.contains(kRemovedKeyword) ? schema[kRemovedKeyword] : none;
        removed.contains(member.key)) {
      const Schema& key = removed[member.key];
      const bool recorded = std::filesystem::path(member.at.file).filename() == "resolved.yaml" &&
                            nlohmann::json(member.value.ToJson()) == nlohmann::json(key.value("const", Schema()));
      if (!recorded) Report(member.at, path, "was removed: " + key.value("description", ""));
      return;
    }
    const Schema& properties = schema.contains("properties") ? schema["properties"] : none;
    std::vector<std::string> keys;
    for (const auto& [key, value] : properties.items()) keys.push_back(key);
    std::string suggestion = Closest(member.key, keys);
    for (const auto& [key, value] : properties.items()) {  // the right key in the wrong mapping
      const Schema& inner = ResolveReference(value, root_);
      if (suggestion.empty() && inner.is_object() && inner.contains("properties") &&
          inner["properties"].contains(member.key)) {
        suggestion = key + "." + member.key;
      }
    }
    std::string message = "unknown key";
    if (properties.contains(member.key + "_env")) {  // a secret, in a file that is kept and shared
      message += "; use " + member.key +
                 "_env: the name of an environment variable that holds it. A key that stood in " +
                 "a file should be revoked";
      suggestion.clear();
    } else if (suggestion.empty() && !keys.empty()) {
      message += "; known are ";
      for (const std::string& key : keys) message += (&key == &keys.front() ? "" : ", ") + key;
    } else if (keys.empty()) {
      message += ": there are none here";
    }
    Report(member.at, path, std::move(message), std::move(suggestion));
  }

  const Schema& root_;
  std::vector<Diagnostic>* diagnostics_;
};

void FillDefaultsWithin(const Schema& unresolved, const Schema& root, const std::string& path, Node* node,
                        std::vector<RemovedKey>* removed) {
  const Schema& schema = ResolveReference(unresolved, root);
  if (!schema.is_object()) return;
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!schema.contains(keyword)) continue;
    for (const Schema& branch : schema[keyword]) {
      std::vector<Diagnostic> objections;
      Checker(root, &objections).Check(*node, branch, "");
      if (!objections.empty()) continue;
      FillDefaultsWithin(branch, root, path, node, removed);
      break;
    }
  }
  if (schema.contains("allOf")) {
    for (const Schema& branch : schema["allOf"]) FillDefaultsWithin(branch, root, path, node, removed);
  }
  if (node->IsList() && schema.contains("items") && schema["items"].is_object()) {
    for (size_t i = 0; i < node->items.size(); ++i)
      FillDefaultsWithin(schema["items"], root, path + "[" + std::to_string(i) + "]", &node->items[i], removed);
  }
  if (!node->IsMapping() || !schema.contains("properties")) return;
  if (schema.contains(kRemovedKeyword)) {
    for (const auto& [key, before] : schema[kRemovedKeyword].items()) {
      node->Erase(key);
      if (removed != nullptr) removed->push_back({JoinPath(path, key), before.value("const", Schema())});
    }
  }
  std::vector<Node::Member> ordered;
  for (const auto& [key, property] : schema["properties"].items()) {
    Node::Member* member = node->Find(key);
    const Schema& resolved = ResolveReference(property, root);
    if (member != nullptr) {
      ordered.push_back(std::move(*member));
      node->members.erase(node->members.begin() + (member - node->members.data()));
    } else if (const Schema& source = property.contains("default") ? property : resolved; source.contains("default")) {
      const Position at{"default", 0, 0, 0};
      ordered.push_back({key, at, Node::FromJson(source["default"], at)});
    } else {
      continue;
    }
    FillDefaultsWithin(property, root, JoinPath(path, key), &ordered.back().value, removed);
  }
  for (Node::Member& member : node->members) ordered.push_back(std::move(member));
  node->members = std::move(ordered);
}

}  // namespace

const Schema& ResolveReference(const Schema& schema, const Schema& root) {
  static const Schema kAnything = true;
  const Schema* resolved = &schema;
  for (int steps = 0; resolved->is_object() && resolved->contains("$ref"); ++steps) {
    const Schema& reference = (*resolved)["$ref"];
    if (steps > 16 || !reference.is_string()) return kAnything;
    const std::string text = reference.get<std::string>();
    if (!text.starts_with("#/")) return kAnything;
    const Schema::json_pointer pointer(text.substr(1));
    if (!root.contains(pointer)) return kAnything;
    resolved = &root[pointer];
  }
  return *resolved;
}

bool HasType(const Node& node, const std::string& type) {
  if (type == "object") return node.IsMapping();
  if (type == "array") return node.IsList();
  if (!node.IsScalar()) return false;
  if (type == "integer") return node.scalar.is_number_integer();
  if (type == "number") return node.scalar.is_number();
  if (type == "string") return node.scalar.is_string();
  if (type == "boolean") return node.scalar.is_boolean();
  return type == "null" && node.scalar.is_null();
}

std::string JoinPath(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

void CheckAgainstSchema(const Node& node, const Schema& schema, const std::string& path,
                        std::vector<Diagnostic>* diagnostics) {
  Checker(schema, diagnostics).Check(node, schema, path);
}

bool Satisfies(const nlohmann::json& value, const Schema& schema) {
  std::vector<Diagnostic> objections;
  CheckAgainstSchema(Node::FromJson(nlohmann::ordered_json(value), {}), schema, "", &objections);
  return objections.empty();
}

void FillDefaults(const Schema& schema, Node* node, const std::string& path, std::vector<RemovedKey>* removed) {
  FillDefaultsWithin(schema, schema, path, node, removed);
}

void FillDefaultsAndCheck(const nlohmann::ordered_json& schema, const std::string& path, nlohmann::json* value) {
  RequireUsableSchema(schema);
  Node node = Node::FromJson(nlohmann::ordered_json(*value), {});
  FillDefaults(schema, &node);
  std::vector<Diagnostic> errors;
  CheckAgainstSchema(node, schema, path, &errors);
  if (!errors.empty()) throw ConfigError(std::move(errors));
  *value = node.ToJson();
}

}  // namespace kgrpo
