// options_json.h - options as the host passes them: a schema's defaults with some changed.
#ifndef KGRPO_TESTS_TRAINER_OPTIONS_JSON_H
#define KGRPO_TESTS_TRAINER_OPTIONS_JSON_H
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kgrpo::testing {

// Throws if `changes` names an option that the schema lacks, so that no test sets an unused option.
inline std::string OptionsJson(std::string_view schema, const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json options = nlohmann::json::object();
  const nlohmann::json properties = nlohmann::json::parse(schema).at("properties");
  for (const auto& [name, property] : properties.items()) options[name] = property.at("default");
  for (const auto& [name, value] : changes.items()) {
    if (!options.contains(name)) throw std::invalid_argument("no such option: " + name);
    options[name] = value;
  }
  return options.dump();
}

}  // namespace kgrpo::testing
#endif
