// Reads an option that is one of several names. Used by the trainers' options.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace kgrpo::trainer {

// The value that the name json[key] stands for; the schema has checked that it is one of them.
template <typename Value>
Value Choice(const nlohmann::json& json, const char* key, const std::map<std::string, Value>& values) {
  return values.at(json.at(key).get<std::string>());
}

}  // namespace kgrpo::trainer
