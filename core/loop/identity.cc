#include "loop/identity.h"

#include "base/files.h"
#include "config/changes.h"
#include "store/json.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

// A list of the run.json that an earlier process of the run wrote.
Json OldRecord(const RunFolder& folder, const char* key) {
  if (!std::filesystem::exists(folder.run_json())) return Json::array();
  const Json before = Json::parse(ReadFile(folder.run_json()), nullptr, /*allow_exceptions=*/false);
  return before.is_object() ? before.value(key, Json::array()) : Json::array();
}

// The record of resumes that a version without the table `changes` wrote: an entry for each resume.
Json EarlierResumes(const RunFolder& folder) {
  Json entries = Json::array();
  for (const Json& entry : OldRecord(folder, "resumed")) {
    if (entry.contains("overrides")) entries.push_back(entry);
  }
  return entries;
}

std::string TextOf(const std::optional<Json>& value) { return DumpJson(value.value_or(nullptr)); }

// All changes of the run's settings, with those of a resume that continues after the step `done`. `now`: the
// differences from the settings of the last process, even if that was killed while it recorded its own. They include
// the defaults of keys that the program did not have before.
std::vector<SettingChange> ChangesUpTo(uint64_t done, const std::vector<Change>& now, RunDatabase& database) {
  std::vector<SettingChange> all;
  const auto add = [&all](SettingChange change) {
    const auto same = std::ranges::find_if(all, [&](const SettingChange& other) {
      return other.after_step == change.after_step && other.key == change.key;
    });
    if (same == all.end())
      all.push_back(std::move(change));
    else
      same->after = std::move(change.after);
  };
  for (SettingChange& change : database.ReadChanges()) {
    change.after_step = std::min(change.after_step, done);  // the steps after `done` are repeated with it
    add(std::move(change));
  }
  for (const Change& change : now) add({done, change.path, TextOf(change.before), TextOf(change.value)});
  std::erase_if(all, [](const SettingChange& change) { return change.before == change.after; });
  return all;
}

// The digests taken when the run was opened, and the evaluator's words about itself.
InputDigests InputsNow(const PipelineParts& parts) {
  InputDigests inputs = parts.inputs;
  inputs[kDescription] = StableDescription(parts.evaluator->Describe());
  return inputs;
}

}  // namespace

std::vector<Change> ResumedInputs(const PipelineConfig& config, const PipelineParts& parts, RunDatabase& database) {
  std::vector<Change> changed = ChangedInputs(RecordedInputs(database), InputsNow(parts));
  const auto settings =
      ChangesBetween(database.Get("resolved_yaml").value_or(""), config.resolved_yaml, config.removed);
  std::erase_if(changed, [&](const Change& change) {  // of another file or plugin: the change of its key tells more
    const std::string key = change.path.substr(0, change.path.find(kContent));
    return settings && std::ranges::any_of(*settings, [&](const Change& setting) { return setting.path == key; });
  });
  RequireResumable(changed, config.may_change);
  return changed;
}

void WriteIdentity(const PipelineConfig& config, const PipelineParts& parts, uint64_t steps,
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
  std::vector<Change> now =
      ChangesBetween(database.Get("resolved_yaml").value_or(""), config.resolved_yaml, config.removed)
          .value_or(std::vector<Change>());
  if (resumed_after) std::ranges::copy(ResumedInputs(config, parts, database), std::back_inserter(now));
  // The record comes first: if the run is killed in between, no resume can use unrecorded values.
  database.WriteChanges(resumed_after ? ChangesUpTo(*resumed_after, now, database) : std::vector<SettingChange>(),
                        config.resolved_yaml, DumpJson(InputsNow(parts)));
  Json identity = {{"name", config.name}, {"seed", config.seed}, {"steps", steps}};
  identity["overrides"] = resumed_after ? OldRecord(folder, "overrides") : Json(overrides);
  if (resumed_after) identity["resumed"] = EarlierResumes(folder);
  for (const SettingChange& change : database.ReadChanges()) identity["resumed"].push_back(ChangeToJson(change));
  if (identity["resumed"].empty()) identity.erase("resumed");
  identity["evaluator"] = parts.evaluator->Describe();
  identity["plugins"] = plugins;
  identity["inputs"] = InputsNow(parts);
  WriteFileAtomically(folder.run_json(), DumpJson(identity, 2) + "\n");
  if (resumed_after) WriteFileAtomically(folder.resolved_yaml(), config.resolved_yaml);
  database.Set("evaluator", parts.evaluator->Describe());
}

void BeginRecord(Purpose purpose, const ProblemSet& problems, const Json& options, RunDatabase& database) {
  database.Set("purpose", PurposeName(purpose));
  database.Set("options", DumpJson(options));
  database.WriteProblems(purpose, problems.Records());
}

}  // namespace kgrpo
