#include "base/option_reader.h"

#include <kgrpo/sdk/error.h>

#include <charconv>

#include <nlohmann/json.hpp>

namespace kgrpo {
namespace {

using Json = nlohmann::json;

const Json* Member(const Json& value, std::string_view key) {
  if (value.is_object()) {
    const auto found = value.find(key);
    return found == value.end() ? nullptr : &*found;
  }
  size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool is_index = value.is_array() && error == std::errc() && end == key.data() + key.size();
  return is_index && index < value.size() ? &value[index] : nullptr;
}

Json ValueAt(std::string_view options, std::string_view path) {
  const Json whole = Json::parse(options, nullptr, /*allow_exceptions=*/false);
  if (whole.is_discarded()) throw Error(KGRPO_ERROR_INVALID, "the options are no JSON");
  const Json* value = &whole;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    value = Member(*value, path.substr(begin, end - begin));
    if (value == nullptr) throw Error(KGRPO_ERROR_NOT_FOUND, "options." + std::string(path) + " is not there");
    begin = end + 1;
  }
  return *value;
}

[[noreturn]] void Refuse(std::string_view path, const char* wanted, const Json& value) {
  throw Error(KGRPO_ERROR_INVALID,
              "options." + std::string(path) + ": expected " + wanted + ", got " + std::string(value.type_name()));
}

}  // namespace

double OptionNumber(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_number()) Refuse(path, "a number", value);
  return value.get<double>();
}

int64_t OptionInteger(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_number_integer()) Refuse(path, "an integer", value);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    throw Error(KGRPO_ERROR_INVALID, "options." + std::string(path) + ": " + value.dump() + " is above 2^63 - 1");
  return value.get<int64_t>();
}

bool OptionFlag(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_boolean()) Refuse(path, "true or false", value);
  return value.get<bool>();
}

std::string OptionText(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_string()) Refuse(path, "a string", value);
  return value.get<std::string>();
}

size_t OptionCount(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_structured()) Refuse(path, "an array or an object", value);
  return value.size();
}

}  // namespace kgrpo
