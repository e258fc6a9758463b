#include "program_shared/options.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/json_schema.h>

#include <algorithm>
#include <array>

namespace kgrpo::program {
namespace {

using nlohmann::json;

constexpr const char* kSchema = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "",
  "type": "object",
  "additionalProperties": false,
  "required": ["command"],
  "properties": {
    "command": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1,
      "x-reads": "content", "description": "The program and its arguments, started in the working directory of kgrpo-host."},
    "options": {"type": "object", "default": {},
      "description": "The program's own options; it publishes which there are, and they are checked when it is started."},
    "copies": {"type": "integer", "minimum": 1, "maximum": 256, "default": 1,
      "x-resume": true, "description": "How many of it may run at once. Further ones are started when all are busy."},
    "start_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 60,
      "x-resume": true, "description": "Limit from its start until it is ready."},
    "request_seconds": {"type": "number", "exclusiveMinimum": 0,
      "x-resume": true, "description": "Limit for one answer. A copy that is later is ended, with its process group."}
  }
})json";

std::string TextOr(const json& object, const char* key, const std::string& otherwise) {
  const json value = object.value(key, json());
  return value.is_string() ? value.get<std::string>() : otherwise;
}

}  // namespace

std::string OptionsSchema(std::string_view title, std::string_view example, double request_seconds) {
  json schema = json::parse(kSchema);
  schema["title"] = title;
  json& properties = schema["properties"];
  properties["command"]["description"] =
      properties["command"]["description"].get<std::string>() + " Example: " + std::string(example);
  properties["request_seconds"]["default"] = request_seconds;
  return schema.dump();
}

PoolOptions ReadOptions(std::string_view text) {
  try {
    const json given = json::parse(text);
    PoolOptions options;
    options.command = given.at("command").get<std::vector<std::string>>();
    if (options.command.empty()) throw Error(KGRPO_ERROR_INVALID, "options.command: the list is empty");
    options.options = given.value("options", json::object());
    options.copies = given.value("copies", size_t{1});
    options.start_seconds = given.value("start_seconds", 60.0);
    options.request_seconds = given.value("request_seconds", 60.0);
    return options;
  } catch (const json::exception& error) {
    throw Error(KGRPO_ERROR_INVALID, std::string("options: ") + error.what());
  }
}

std::string Joined(const std::vector<std::string>& command) {
  std::string joined;
  for (const std::string& word : command) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

Hello ReadHello(const json& said, std::string_view role) {
  if (!said.is_object() || !said.contains("protocol") || !said["protocol"].is_number_integer())
    throw Broken("answered \"initialize\" without a \"protocol\": " + Excerpt(said.dump()));
  if (said["protocol"] != kProtocol) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "the program speaks protocol " + said["protocol"].dump() +
                                             ", this plugin protocol " + std::to_string(kProtocol));
  }
  const json roles = said.value("roles", json());
  if (!roles.is_array() || std::ranges::find(roles, json(role)) == roles.end()) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "the program is no " + std::string(role) + ": it offers " + Excerpt(roles.dump()));
  }
  Hello hello;
  hello.name = TextOr(said, "name", "");
  hello.version = TextOr(said, "version", "");
  const json concurrency = said.value("concurrency", json(1U));
  if (!concurrency.is_number_unsigned() || concurrency < 1 || concurrency > 65536)
    throw Broken("wants a concurrency of " + Excerpt(concurrency.dump()) + ", which is no number from 1 to 65536");
  hello.concurrency = concurrency;
  hello.idle = said.value("idle", json()) == true;
  return hello;
}

json CheckProgramOptions(const json& given, const json& schema) {
  if (schema.is_null()) return given;
  if (!schema.is_object())
    throw Error(KGRPO_ERROR_INVALID, "the program's options_schema is no JSON object: " + Excerpt(schema.dump()));
  json options = given;
  FillDefaultsAndCheck(schema, "options.options", &options);
  return options;
}

void DeclareMetrics(const Host& host, const json& metrics) {
  constexpr std::array<const char*, 7> kKinds = {"number", "quantity", "seconds", "fraction",
                                                 "flag",   "dollars",  "run_time"};
  if (!metrics.is_array()) return;
  for (const json& metric : metrics) {
    if (!metric.is_object()) continue;
    const std::string name = TextOr(metric, "name", ""), label = TextOr(metric, "label", name);
    const std::string group = TextOr(metric, "group", ""), unit = TextOr(metric, "unit", "");
    const std::string kind = TextOr(metric, "kind", "number"), better = TextOr(metric, "better", "");
    if (name.empty()) continue;
    MetricDeclaration declaration = {.name = name, .label = label, .group = group, .unit = unit};
    const auto found = std::ranges::find(kKinds, kind);
    if (found != kKinds.end()) declaration.kind = static_cast<kgrpo_metric_kind>(found - kKinds.begin());
    declaration.direction = better == "higher"  ? KGRPO_METRIC_HIGHER_IS_BETTER
                            : better == "lower" ? KGRPO_METRIC_LOWER_IS_BETTER
                                                : KGRPO_METRIC_NEUTRAL;
    host.Declare(declaration);
  }
}

void ReadConfigured(const json& said, Hello* hello) {
  if (!said.is_object()) return;
  hello->metrics = said.value("metrics", json());
  const json suggestions = said.value("suggestions", json::array());
  const auto is_text = [](const json& one) { return one.is_string() && !one.get_ref<const std::string&>().empty(); };
  if (!suggestions.is_array() || !std::ranges::all_of(suggestions, is_text))
    throw Broken("gave suggestions that are no list of texts: " + Excerpt(suggestions.dump()));
  hello->suggestions = suggestions.get<std::vector<std::string>>();
}

}  // namespace kgrpo::program
