// The keys of a mapping in the pipeline file, one row each: the JSON Schema, the default (the member's) and the reading
// come from the row. Used by pipeline_keys.cc, whose rows are all keys that a pipeline has.
#ifndef KGRPO_CONFIG_KEYS_H
#define KGRPO_CONFIG_KEYS_H

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/schema.h"

namespace kgrpo {

// Keywords of JSON Schema that a row adds to those of its member's type.
inline Schema Range(int64_t least, int64_t most) { return {{"minimum", least}, {"maximum", most}}; }
inline Schema Above(int64_t least, int64_t most) { return {{"exclusiveMinimum", least}, {"maximum", most}}; }

// Describes the keys, or reads them from a mapping that satisfies the schema and has its defaults filled in.
class Keys {
 public:
  Keys() = default;
  explicit Keys(const Schema& values) : values_(&values) {}

  // A key whose value is the member's: a number, true or false, a text, or a list of folders.
  template <typename Value>
  void Add(const char* key, Value& member, const char* sentence, const Schema& further = Schema::object()) {
    if (values_ != nullptr) return Read(values_->at(key), member);
    Schema schema = TypeOf<Value>();
    schema["default"] = ToJson(member);
    Describe(key, std::move(schema), sentence, further);
  }

  // The same for a key without default, which may be absent; the member then keeps its value.
  template <typename Value>
  void Optional(const char* key, Value& member, const char* sentence, const Schema& further = Schema::object()) {
    if (values_ == nullptr) return Describe(key, TypeOf<Value>(), sentence, further);
    if (values_->contains(key)) Read(values_->at(key), member);
  }

  // A key whose value is one of several words, each with the member's value for it.
  template <typename Value>
  void OneOf(const char* key, Value& member, const char* sentence,
             const std::vector<std::pair<const char*, Value>>& words) {
    Schema schema = {{"enum", Schema::array()}};
    for (const auto& [word, value] : words) {
      if (values_ != nullptr && values_->at(key) == word) member = value;
      if (values_ != nullptr) continue;
      schema["enum"].push_back(word);
      if (member == value) schema["default"] = word;
    }
    if (values_ == nullptr) Describe(key, std::move(schema), sentence);
  }

  // A key whose value is a mapping of further keys, which rows(Keys&) adds.
  template <typename Rows>
  void Mapping(const char* key, const char* sentence, Rows rows) {
    Keys inner;
    if (values_ != nullptr) inner.values_ = &values_->at(key);
    rows(inner);
    if (values_ != nullptr) return;
    inner.schema_["default"] = Schema::object();
    Describe(key, inner.schema_, sentence);
  }

  // A key of earlier versions: the value that is in force now, and why it was removed.
  void Removed(const char* key, const Schema& meaning, const char* reason) {
    schema_[kRemovedKeyword][key] = {{"const", meaning}, {"description", reason}};
  }

  // A key with its own schema. Returns its value to read; null if there is none, or the keys are being described.
  const Schema* Own(const char* key, Schema schema, const char* sentence) {
    if (values_ == nullptr) Describe(key, std::move(schema), sentence);
    return values_ != nullptr && values_->contains(key) ? &values_->at(key) : nullptr;
  }

  Schema schema() const { return schema_; }

 private:
  template <typename Value>
  static Schema TypeOf() {
    if constexpr (std::is_same_v<Value, bool>) return {{"type", "boolean"}};
    if constexpr (std::is_same_v<Value, std::optional<bool>>) return {{"type", {"boolean", "null"}}};
    if constexpr (std::is_integral_v<Value>) return {{"type", "integer"}, {"minimum", 0}};
    if constexpr (std::is_floating_point_v<Value>) return {{"type", "number"}};
    if constexpr (std::is_same_v<Value, std::string>) return {{"type", "string"}};
    return {{"$ref", "#/definitions/folders"}};
  }
  template <typename Value>
  static Schema ToJson(const Value& value) {
    return value;
  }
  static Schema ToJson(const std::optional<bool>& value) { return value ? Schema(*value) : Schema(); }
  template <typename Value>
  static void Read(const Schema& value, Value& member) {
    member = value.get<Value>();
  }
  static void Read(const Schema& value, std::optional<bool>& member) {
    if (!value.is_null()) member = value.get<bool>();
  }

  void Describe(const char* key, Schema schema, const char* sentence, const Schema& further = Schema::object()) {
    schema.update(further);
    schema["description"] = sentence;
    schema_["properties"][key] = std::move(schema);
  }

  const Schema* values_ = nullptr;  // null: the keys are being described
  Schema schema_ = {{"type", "object"}, {"additionalProperties", false}, {"properties", Schema::object()}};
};

}  // namespace kgrpo
#endif
