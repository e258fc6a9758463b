#include "policy_qwen/tokenizer/json_reader.h"

#include <kgrpo/sdk/error.h>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {

using nlohmann::json;

ObjectReader::ObjectReader(const std::string& file, std::string path, const json& value)
    : file_(file), path_(std::move(path)), value_(value) {
  if (!value_.is_object()) {
    throw Error(KGRPO_ERROR_INVALID,
                file_ + ": " + path_ + ": is a JSON " + value_.type_name() + ", must be an object");
  }
}

const json* ObjectReader::Find(std::string_view key) {
  asked_.emplace(key);
  const auto found = value_.find(std::string(key));
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

const json& ObjectReader::Require(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr) Fail(key, "is missing");
  return *value;
}

bool ObjectReader::Bool(std::string_view key, bool otherwise) {
  const json* value = Find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) FailType(key, "true or false");
  return value->get<bool>();
}

std::string ObjectReader::String(std::string_view key) {
  const json& value = Require(key);
  if (!value.is_string()) FailType(key, "a string");
  return value.get<std::string>();
}

std::string ObjectReader::Character(std::string_view key) {
  std::string text = String(key);
  if (text.empty() || CodePointAt(text, 0).length != text.size()) Fail(key, "is '" + text + "', must be one character");
  return text;
}

size_t ObjectReader::Count(std::string_view key) {
  const json& value = Require(key);
  if (!value.is_number_integer() || value < 0)
    Fail(key, "is " + value.dump() + ", must be a whole number of 0 or more");
  return value.get<size_t>();
}

ObjectReader ObjectReader::Object(std::string_view key) { return ObjectReader(file_, PathOf(key), Require(key)); }

const json& ObjectReader::Array(std::string_view key) {
  const json& value = Require(key);
  if (!value.is_array()) FailType(key, "an array");
  return value;
}

void ObjectReader::RefuseOthers() {
  for (const auto& [key, value] : value_.items()) {
    if (asked_.contains(key)) continue;
    Refuse(key, "is not known here, and may change how text is tokenized; remove it if it has no effect");
  }
}

std::string ObjectReader::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void ObjectReader::FailType(std::string_view key, const std::string& expected) const {
  Fail(key, std::string("is a JSON ") + value_[std::string(key)].type_name() + ", must be " + expected);
}

void ObjectReader::Fail(std::string_view key, const std::string& what) const {
  throw Error(KGRPO_ERROR_INVALID, file_ + ": " + PathOf(key) + ": " + what);
}

void ObjectReader::Refuse(std::string_view key, const std::string& what) const {
  throw Error(KGRPO_ERROR_UNSUPPORTED, file_ + ": " + PathOf(key) + ": " + what);
}

void ObjectReader::RefuseType(const std::string& kind, const std::string& supported) {
  Refuse("type", kind + " '" + String("type") + "' is not supported (" + supported + " and Sequence are)");
}

std::vector<ObjectReader> ReadSteps(const std::string& file, const std::string& path, const json& value,
                                    std::string_view list) {
  std::vector<ObjectReader> steps;
  if (value.is_null()) return steps;
  ObjectReader step(file, path, value);
  if (step.String("type") != "Sequence") {
    steps.push_back(std::move(step));
    return steps;
  }
  const json& parts = step.Array(list);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (ObjectReader& part : ReadSteps(file, step.PathOf(list) + "[" + std::to_string(i) + "]", parts[i], list))
      steps.push_back(std::move(part));
  }
  step.RefuseOthers();
  return steps;
}

}  // namespace kgrpo::tokenizer
