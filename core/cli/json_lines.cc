#include "cli/json_lines.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <utility>

#include "config/diagnostic.h"

namespace kgrpo::cli {
namespace {

constexpr size_t kMaxReported = 20;

[[noreturn]] void Fail(const std::string& message) {
  throw Error(KGRPO_ERROR_INVALID, message);
}

std::string Quoted(const std::string& key) {
  return "\"" + key + "\"";
}

std::string Shown(const nlohmann::json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

[[noreturn]] void FailType(const std::string& where, const char* expected, const nlohmann::json& found) {
  Fail(where + ": expected " + expected + ", found " + Shown(found));
}

}  // namespace

const nlohmann::json& JsonLine::Get(const std::string& key) const {
  const auto value = object_.find(key);
  if (value == object_.end()) Fail("the key " + Quoted(key) + " is missing");
  return *value;
}

void JsonLine::RequireKnown(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string closest = Closest(key, known);
    std::string list;
    for (const std::string& word : known) list += (list.empty() ? "" : ", ") + word;
    Fail("unknown key " + Quoted(key) +
         (closest.empty() ? "; known are " + list : "; did you mean " + Quoted(closest) + "?"));
  }
}

std::string JsonLine::Text(const std::string& key) const {
  const nlohmann::json& value = Get(key);
  if (!value.is_string()) FailType(Quoted(key), "text", value);
  return value.get<std::string>();
}

double JsonLine::Number(const std::string& key) const {
  const nlohmann::json& value = Get(key);
  if (!value.is_number()) FailType(Quoted(key), "a number", value);
  return value.get<double>();
}

uint64_t JsonLine::Count(const std::string& key) const {
  const nlohmann::json& value = Get(key);
  if (!value.is_number_unsigned()) FailType(Quoted(key), "an integer >= 0", value);
  return value.get<uint64_t>();
}

bool JsonLine::Flag(const std::string& key) const {
  const nlohmann::json& value = Get(key);
  if (!value.is_boolean()) FailType(Quoted(key), "true or false", value);
  return value.get<bool>();
}

std::vector<int32_t> JsonLine::Ids(const std::string& key) const {
  const nlohmann::json& value = Get(key);
  if (!value.is_array()) FailType(Quoted(key), "a list of token ids", value);
  std::vector<int32_t> ids;
  ids.reserve(value.size());
  for (const nlohmann::json& id : value) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
      FailType(Quoted(key) + "[" + std::to_string(ids.size()) + "]", "a token id", id);
    }
    ids.push_back(id.get<int32_t>());
  }
  if (ids.empty()) Fail(Quoted(key) + ": expected at least one token id, found none");
  return ids;
}

std::vector<float> JsonLine::Numbers(const std::string& key) const {
  const nlohmann::json& value = Get(key);
  if (!value.is_array()) FailType(Quoted(key), "a list of numbers", value);
  std::vector<float> numbers;
  numbers.reserve(value.size());
  for (const nlohmann::json& number : value) {
    if (!number.is_number()) FailType(Quoted(key) + "[" + std::to_string(numbers.size()) + "]", "a number", number);
    numbers.push_back(number.get<float>());
  }
  return numbers;
}

void ReadJsonLines(const std::string& file, const std::function<void(JsonLine line)>& check) {
  const bool standard = file == "-";
  std::ifstream opened;
  if (!standard) {
    errno = 0;
    opened.open(file, std::ios::binary);
    if (!opened) throw Error(KGRPO_ERROR_NOT_FOUND, "cannot read " + file + ": " + std::strerror(errno));
  }
  std::istream& stream = standard ? std::cin : opened;
  const std::string name = standard ? "<stdin>" : file;

  std::string mistakes;
  size_t bad = 0, number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      nlohmann::json object;
      try {
        object = nlohmann::json::parse(text);
      } catch (const nlohmann::json::parse_error& error) {
        Fail("not JSON, at column " + std::to_string(error.byte));
      }
      if (!object.is_object()) Fail("expected a JSON object, found " + Shown(object));
      check(JsonLine(std::move(object), number));
    } catch (const Error& error) {
      if (++bad <= kMaxReported) {
        mistakes += (mistakes.empty() ? "" : "\n") + name + ":" + std::to_string(number) + ": " + error.what();
      }
    }
  }
  if (stream.bad()) throw Error(KGRPO_ERROR_UNAVAILABLE, "reading " + name + " failed");
  if (bad > kMaxReported) mistakes += "\n... and " + std::to_string(bad - kMaxReported) + " more bad lines";
  if (bad > 0) Fail(mistakes);
}

void WriteJsonLine(const nlohmann::ordered_json& object) {
  const std::string line = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot write to standard output: ") + std::strerror(errno));
  }
}

}  // namespace kgrpo::cli
