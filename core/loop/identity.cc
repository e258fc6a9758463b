#include "loop/identity.h"

#include "config/changes.h"
#include "store/files.h"
#include "store/json.h"

#include <filesystem>
#include <optional>

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

// Settings on the run's command lines: "overrides" of the first one, and "resumed", an entry for each resume that
// changed something, with the earlier values.
Json OverridesOf(const RunFolder& folder, const std::string& resolved_yaml, const std::vector<std::string>& now,
                 std::optional<uint64_t> resumed_after) {
  if (!resumed_after) return {{"overrides", now}};
  Json before;
  if (std::filesystem::exists(folder.run_json()))
    before = Json::parse(ReadFile(folder.run_json()), nullptr, /*allow_exceptions=*/false);
  Json all = {{"overrides", Json::array()}};
  for (const char* key : {"overrides", "resumed"}) {
    if (before.is_object() && before.contains(key) && before[key].is_array()) all[key] = before[key];
  }
  if (now.empty()) return all;
  Json replaced = Json::object();
  const auto changes = ChangesBetween(resolved_yaml, ReadFile(folder.resolved_yaml()));  // to the old values
  for (const Change& change : changes.value_or(std::vector<Change>()))
    replaced[change.path] = change.value.value_or(nullptr);
  all["resumed"].push_back({{"after_step", *resumed_after}, {"overrides", now}, {"before", replaced}});
  return all;
}

// The plugins that can influence a run's results: all but the observers.
Json WithoutObservers(const Json& plugins) {
  Json others = Json::array();
  for (const Json& plugin : plugins) {
    if (!plugin.at("role").get<std::string>().starts_with("observers[")) others.push_back(plugin);
  }
  return others;
}

}  // namespace

bool WriteIdentity(const PipelineConfig& config, const PipelineParts& parts, uint64_t steps,
                   const std::vector<std::string>& overrides, std::optional<uint64_t> resumed_after,
                   const RunFolder& folder, RunDatabase& database) {
  Json plugins = Json::array();
  for (const PluginIdentity& plugin : parts.identities) {
    plugins.push_back({{"role", plugin.role},
                       {"name", plugin.name},
                       {"version", plugin.version},
                       {"path", plugin.path},
                       {"sha256", plugin.sha256}});
  }
  const std::string text = DumpJson(plugins);
  const std::optional<std::string> before = database.Get("plugins");
  Json identity = {{"name", config.name}, {"seed", config.seed}, {"steps", steps}};
  identity.update(OverridesOf(folder, config.resolved_yaml, overrides, resumed_after));
  identity["evaluator"] = parts.evaluator->Describe();
  identity["plugins"] = plugins;
  WriteFileAtomically(folder.run_json(), DumpJson(identity, 2) + "\n");
  // Written after run.json records the changes: if the run is killed in between, no resume can use unrecorded values.
  if (resumed_after && !overrides.empty()) WriteFileAtomically(folder.resolved_yaml(), config.resolved_yaml);
  database.Set("plugins", text);
  database.Set("resolved_yaml", config.resolved_yaml);
  database.Set("evaluator", parts.evaluator->Describe());
  return !before || WithoutObservers(Json::parse(*before)) == WithoutObservers(plugins);
}

}  // namespace kgrpo
