#include "model/json_lines.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/closest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

namespace kgrpo::cli {
namespace {

constexpr size_t kMaxReported = 20;

[[noreturn]] void Fail(const std::string& message) { throw Error(KGRPO_ERROR_INVALID, message); }

std::string Quoted(const std::string& key) { return "\"" + key + "\""; }

std::string ShownJson(const nlohmann::ordered_json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  const std::string text = value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

[[noreturn]] void FailType(const std::string& where, const char* expected, const nlohmann::ordered_json& found) {
  Fail(where + ": expected " + expected + ", found " + ShownJson(found));
}

// Returns why a line cannot be parsed, and the remedy. `byte`, from 1: position where the parser stopped.
std::string WhyNotJson(const std::string& text, size_t byte, const std::string& parser_says) {
  if (byte > text.size()) {
    return "not JSON: the line breaks off after column " + std::to_string(text.size()) +
           "; each line must hold one whole object";
  }
  const std::string column = ", at column " + std::to_string(byte);
  if (parser_says.find("UTF-8") != std::string::npos) return "not UTF-8" + column + ": write the file as UTF-8";
  if (parser_says.find("surrogate") != std::string::npos)
    return "half of a surrogate pair" + column + ": \\ud800 to \\udfff are characters only in pairs";
  // Python's json.dumps writes NaN and Infinity, which JSON does not have.
  for (const char* word : {"NaN", "nan", "Infinity", "Inf", "inf"}) {
    for (size_t before = 1; before <= 2; ++before) {  // the parser stopped at the word's first or second letter
      if (byte >= before && text.compare(byte - before, std::strlen(word), word) == 0) {
        return "not JSON" + column + ": there is no " + word + " in JSON; every number must be finite";
      }
    }
  }
  return "not JSON" + column + ": each line must hold one object, {...}";
}

// The object of a line. Throws for a key that occurs twice; the parser alone would take the last value.
nlohmann::ordered_json ParseObject(const std::string& text) {
  std::set<std::string> keys;
  std::string twice;
  nlohmann::ordered_json object;
  try {
    object = nlohmann::ordered_json::parse(
        text, [&](int depth, nlohmann::ordered_json::parse_event_t event, nlohmann::ordered_json& parsed) {
          if (depth > 200) Fail("lists and objects are nested more than 200 deep");
          if (event == nlohmann::ordered_json::parse_event_t::key && depth == 1) {
            const auto& key = parsed.get_ref<const std::string&>();
            if (!keys.insert(key).second) twice = key;
          }
          return true;
        });
  } catch (const nlohmann::ordered_json::parse_error& error) {
    Fail(WhyNotJson(text, error.byte, error.what()));
  } catch (const nlohmann::ordered_json::out_of_range& error) {  // "number overflow parsing '1e400'"
    const std::string says = error.what();
    const size_t quote = says.find('\'');
    const std::string number =
        quote == std::string::npos ? "a number" : says.substr(quote + 1, says.size() - quote - 2);
    Fail((number.size() <= 40 ? number : number.substr(0, 37) + "...") +
         " is too large: every number must fit a double (up to 1.8e308)");
  }
  if (!object.is_object()) Fail("expected a JSON object, found " + ShownJson(object));
  if (!twice.empty()) Fail("the key " + Quoted(twice) + " is given twice: keep one");
  return object;
}

}  // namespace

const nlohmann::ordered_json& JsonLine::Get(const std::string& key) const {
  const auto value = object_.find(key);
  if (value == object_.end()) Fail("the key " + Quoted(key) + " is missing: every line needs it");
  return *value;
}

void JsonLine::RequireKnown(const std::vector<std::string>& known, const std::vector<std::string>& ignored) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (std::find(ignored.begin(), ignored.end(), key) != ignored.end()) continue;
    const std::string closest = Closest(key, known);
    Fail("unknown key " + Quoted(key) +
         (closest.empty() ? "; known are " + JoinedText(known) : "; did you mean " + Quoted(closest) + "?"));
  }
}

std::string JsonLine::Text(const std::string& key) const {
  const nlohmann::ordered_json& value = Get(key);
  if (!value.is_string()) FailType(Quoted(key), "text", value);
  return value.get<std::string>();
}

double JsonLine::Number(const std::string& key) const {
  const nlohmann::ordered_json& value = Get(key);
  if (!value.is_number()) FailType(Quoted(key), "a number", value);
  return value.get<double>();
}

uint64_t JsonLine::Count(const std::string& key) const {
  const nlohmann::ordered_json& value = Get(key);
  if (!value.is_number_unsigned()) FailType(Quoted(key), "an integer >= 0", value);
  return value.get<uint64_t>();
}

std::string JsonLine::NameOrNumber(const std::string& key) const {
  const nlohmann::ordered_json& value = Get(key);
  const bool name = value.is_string() && !value.get_ref<const std::string&>().empty();
  if (!name && !value.is_number_unsigned()) FailType(Quoted(key), "a name or a number", value);
  return value.dump();
}

bool JsonLine::Flag(const std::string& key) const {
  const nlohmann::ordered_json& value = Get(key);
  if (!value.is_boolean()) FailType(Quoted(key), "true or false", value);
  return value.get<bool>();
}

std::vector<int32_t> JsonLine::Ids(const std::string& key) const {
  const nlohmann::ordered_json& value = Get(key);
  if (!value.is_array()) FailType(Quoted(key), "a list of token ids", value);
  std::vector<int32_t> ids;
  ids.reserve(value.size());
  for (const nlohmann::ordered_json& id : value) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
      FailType(Quoted(key) + "[" + std::to_string(ids.size()) + "]", "a token id", id);
    }
    ids.push_back(id.get<int32_t>());
  }
  if (ids.empty()) Fail(Quoted(key) + ": expected at least one token id, found none");
  return ids;
}

std::vector<float> JsonLine::Numbers(const std::string& key) const {
  const nlohmann::ordered_json& value = Get(key);
  if (!value.is_array()) FailType(Quoted(key), "a list of numbers", value);
  std::vector<float> numbers;
  numbers.reserve(value.size());
  for (const nlohmann::ordered_json& number : value) {
    if (!number.is_number()) FailType(Quoted(key) + "[" + std::to_string(numbers.size()) + "]", "a number", number);
    numbers.push_back(number.get<float>());
  }
  return numbers;
}

std::string InputName(const std::string& file) { return file == "-" ? "<stdin>" : file; }

void LineMistakes::Try(size_t line, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    if (++count_ > kMaxReported) return;
    messages_ += (messages_.empty() ? "" : "\n") + name_ + ":" + std::to_string(line) + ": " + error.what();
  }
}

void LineMistakes::ThrowIfAny() const {
  if (count_ == 0) return;
  Fail(messages_ +
       (count_ > kMaxReported ? "\n... and " + std::to_string(count_ - kMaxReported) + " more bad lines" : ""));
}

void ReadJsonLines(const std::string& file, const std::function<void(JsonLine line)>& check) {
  const bool standard = file == "-";
  std::ifstream opened;
  if (!standard) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
      Fail("cannot read " + file + ": it is a folder; name a file of JSON lines");
    }
    errno = 0;
    opened.open(file, std::ios::binary);
    if (!opened) throw Error(KGRPO_ERROR_NOT_FOUND, "cannot read " + file + ": " + std::strerror(errno));
  }
  std::istream& stream = standard ? std::cin : opened;
  LineMistakes mistakes(InputName(file));
  size_t number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    mistakes.Try(number, [&] { check(JsonLine(ParseObject(text), number)); });
  }
  if (stream.bad()) throw Error(KGRPO_ERROR_UNAVAILABLE, "reading " + InputName(file) + " failed");
  mistakes.ThrowIfAny();
}

void WriteJsonLine(const nlohmann::ordered_json& object) {
  const std::string line = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot write to standard output: ") + std::strerror(errno));
  }
}

}  // namespace kgrpo::cli
