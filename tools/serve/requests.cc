#include "serve/requests.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include <kgrpo/support/closest.h>
#include "serve/http_server.h"  // HttpError

namespace kgrpo::serve {
namespace {

using SortedJson = nlohmann::json;  // an object of many keys is read in linear time, unlike ordered_json

constexpr size_t kDeepest = 32;
constexpr size_t kValuesEach = 64;  // of an evaluation, on average over the request, and as many again in any case
constexpr size_t kLongestQuote = 200;

[[noreturn]] void Refuse(const std::string& path, const std::string& what) {
  throw HttpError(400, "invalid", (path.empty() ? "the body" : path) + ": " + what);
}

std::string PathOf(const std::string& path, const std::string& key) {
  const std::string shown = key.substr(0, kLongestQuote);
  return path.empty() ? shown : path + "." + shown;
}

// Refuses a text that would cost much more to parse and to judge than to send: one pass over its bytes.
void RequireModest(const std::string& body, size_t most_evaluations) {
  const size_t most_values = kValuesEach * (most_evaluations + kValuesEach);
  size_t depth = 0, values = 0, evaluations = 0;
  bool in_text = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_text) {
      i += c == '\\' ? 1 : 0;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest)
        throw HttpError(400, "too_deep", "the body: JSON nested deeper than " + std::to_string(kDeepest) + " levels");
      evaluations += c == '{' && depth == 3 ? 1 : 0;  // of {"evaluations": [{...}, ...]}
      ++values;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    } else if (c == ',') {
      ++values;
    }
    if (evaluations > most_evaluations) {
      throw HttpError(413, "too_many",
                      "the request asks for more than " + std::to_string(most_evaluations) +
                          " evaluations, as many as the queue holds: send them in parts");
    }
    if (values > most_values)
      throw HttpError(413, "too_large", "the body holds more than " + std::to_string(most_values) + " values");
  }
}

void RequireKeys(const SortedJson& object, const std::string& path, std::initializer_list<const char*> known) {
  if (!object.is_object()) Refuse(path, std::string("expected an object, not ") + object.type_name());
  for (const auto& item : object.items()) {
    const std::string& key = item.key();
    if (std::ranges::find_if(known, [&](const char* one) { return key == one; }) != known.end()) continue;
    const std::vector<std::string> keys(known.begin(), known.end());
    const std::string closest = Closest(key, keys);
    Refuse(PathOf(path, key), closest.empty() ? "no such key; there are " + JoinedText(keys)
                                              : "no such key; did you mean \"" + closest + "\"?");
  }
}

std::string Text(const SortedJson& object, const char* key, const std::string& path) {
  const SortedJson& value = object.at(key);
  if (!value.is_string()) Refuse(PathOf(path, key), std::string("expected text, not ") + value.type_name());
  return value;
}

bool Flag(const SortedJson& object, const char* key, const std::string& path) {
  if (!object.contains(key)) return false;
  if (!object[key].is_boolean()) Refuse(PathOf(path, key), "expected true or false");
  return object[key];
}

EvaluationRequest ReadOne(const SortedJson& json, const std::string& path, bool alone) {
  if (alone)
    RequireKeys(json, path, {"problem", "source", "seed", "thoroughness", "devices", "stream"});
  else
    RequireKeys(json, path, {"problem", "source", "seed", "thoroughness", "devices"});
  EvaluationRequest request;
  if (!json.contains("problem"))
    Refuse(PathOf(path, "problem"), "missing: a problem's name, or an object with its files");
  request.problem = ReadProblem(json["problem"], PathOf(path, "problem"));
  if (json.contains("source") && !json["source"].is_null()) request.source = Text(json, "source", path);
  if (json.contains("seed")) {
    if (!json["seed"].is_number_unsigned()) Refuse(PathOf(path, "seed"), "expected a whole number of at least 0");
    request.seed = json["seed"];
  }
  if (json.contains("thoroughness")) {
    const std::string word = Text(json, "thoroughness", path);
    if (word != "quick" && word != "thorough")
      Refuse(PathOf(path, "thoroughness"), R"(expected "quick" or "thorough")");
    request.thorough = word == "thorough";
  }
  if (json.contains("devices")) {
    const SortedJson& devices = json["devices"];
    if (!devices.is_array() || devices.empty())
      Refuse(PathOf(path, "devices"), R"(expected a list of names: ["h100"])");
    std::set<std::string> named;
    for (size_t i = 0; i < devices.size(); ++i) {
      const std::string place = PathOf(path, "devices[" + std::to_string(i) + "]");
      if (!devices[i].is_string()) Refuse(place, "expected text");
      request.devices.push_back(devices[i]);
      if (!named.insert(request.devices.back()).second) Refuse(place, "named twice");
    }
  }
  return request;
}

}  // namespace

SortedJson ParseBody(const std::string& body, size_t most_evaluations) {
  RequireModest(body, most_evaluations);
  try {
    return SortedJson::parse(body);
  } catch (const SortedJson::exception& error) {
    throw HttpError(400, "not_json", "the body is not JSON: " + std::string(error.what()).substr(0, kLongestQuote));
  }
}

ProblemRequest ReadProblem(const SortedJson& json, const std::string& path) {
  ProblemRequest problem;
  if (json.is_string()) {
    problem.name = json;
    return problem;
  }
  RequireKeys(json, path, {"name", "sha256", "files"});
  if (!json.contains("name")) Refuse(PathOf(path, "name"), "missing");
  problem.name = Text(json, "name", path);
  if (json.contains("sha256")) problem.sha256 = Text(json, "sha256", path);
  if (json.contains("files")) {
    problem.files.emplace();
    if (!json["files"].is_object()) Refuse(PathOf(path, "files"), "expected an object: content by file name");
    for (const auto& [name, content] : json["files"].items()) {
      if (!content.is_string()) Refuse(PathOf(path, "files." + name), "expected text");
      problem.files->emplace(name, content.get<std::string>());
    }
  }
  return problem;
}

EvaluationsRequest ReadEvaluations(const SortedJson& body) {
  EvaluationsRequest request;
  if (!body.is_object()) Refuse("", std::string("expected an object, not ") + body.type_name());
  request.batch = body.contains("evaluations");
  request.stream = Flag(body, "stream", "");
  if (!request.batch) {
    request.evaluations.push_back(ReadOne(body, "", true));
    return request;
  }
  RequireKeys(body, "", {"evaluations", "stream"});
  const SortedJson& list = body["evaluations"];
  if (!list.is_array() || list.empty()) Refuse("evaluations", "expected a list of at least one evaluation");
  for (size_t i = 0; i < list.size(); ++i)
    request.evaluations.push_back(ReadOne(list[i], "evaluations[" + std::to_string(i) + "]", false));
  return request;
}

}  // namespace kgrpo::serve
