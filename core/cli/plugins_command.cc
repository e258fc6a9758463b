// `kgrpo-host plugins list | describe NAME | validate PATH...`
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/directories.h"
#include "cli/command.h"
#include "cli/print_json.h"
#include "cli/session.h"
#include "cli/table.h"
#include "plugin/catalog.h"
#include "plugin/validate.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ", ") + word;
  return joined;
}

// ---- list ---------------------------------------------------------------------------------------

int List(const Globals& globals, bool json) {
  Session session(globals);
  std::filesystem::path cache;
  try {
    cache = CacheRoot() / "plugins.json";
  } catch (const Error&) {
    // Without a home directory there is no cache: every plugin is loaded.
  }
  const std::vector<PluginSummary> plugins = ListPlugins(session.loader(), cache);
  if (json) {
    Json all = Json::array();
    for (const PluginSummary& plugin : plugins) {
      all.push_back({{"name", plugin.name},
                     {"version", plugin.version},
                     {"summary", plugin.summary},
                     {"roles", plugin.roles},
                     {"path", plugin.path.string()},
                     {"error", plugin.error}});
    }
    PrintJson(all);
    return kFine;
  }
  std::vector<std::vector<std::string>> rows;
  for (const PluginSummary& plugin : plugins) {
    if (plugin.error.empty()) rows.push_back({plugin.name, Join(plugin.roles), plugin.version, plugin.summary});
  }
  if (!rows.empty()) PrintTable({"NAME", "ROLE", "VERSION", "SUMMARY"}, rows);
  for (const PluginSummary& plugin : plugins) {
    if (!plugin.error.empty()) std::fprintf(stderr, "%s: %s\n", plugin.path.c_str(), plugin.error.c_str());
  }
  if (plugins.empty()) {
    std::fprintf(stderr, "no plugins in");
    for (const auto& directory : session.loader().directories()) std::fprintf(stderr, " %s", directory.c_str());
    std::fprintf(stderr, "; name a folder with --plugin-path or KGRPO_PLUGIN_PATH\n");
  }
  return kFine;
}

// ---- describe -----------------------------------------------------------------------------------

std::string ShownDefault(const Json& value) {
  const std::string text = value.dump();
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

// Adds one row for each option; options of nested mappings follow as a.b.
void AddRows(const Schema& schema, const Schema& root, const std::string& path,
             std::vector<std::vector<std::string>>* rows) {
  if (!schema.contains("properties")) return;
  const auto required = schema.value("required", std::vector<std::string>());
  for (const auto& [key, property] : schema["properties"].items()) {
    const bool needed = std::find(required.begin(), required.end(), key) != required.end();
    std::string standard = needed ? "required" : "";
    if (property.contains("default")) standard = ShownDefault(property["default"]);
    const bool may_change = property.value(kMayChangeKeyword, Json()) == true;
    rows->push_back(
        {JoinPath(path, key), DescribeExpected(property, root), standard,
         property.value("description", property.value("title", "")) + (may_change ? " `resume` may change it." : "")});
    AddRows(property, root, JoinPath(path, key), rows);
  }
}

int Describe(const Globals& globals, const std::string& name, bool json) {
  Session session(globals);
  const PluginLibrary& library = session.loader().Load(name);
  Json all = {{"name", library.name()},
              {"version", library.version()},
              {"summary", library.summary()},
              {"path", library.path().string()}};
  all["options"] = Json::object();
  for (Role role : kRoles) {
    if (library.Plays(role)) all["options"][RoleName(role)] = library.OptionsSchema(role);
  }
  if (json) {
    PrintJson(all);
    return kFine;
  }
  std::printf("%s %s: %s\n%s\n", library.name().c_str(), library.version().c_str(), library.summary().c_str(),
              library.path().c_str());
  for (const auto& [role, schema] : all["options"].items()) {
    std::printf("\nAs %s:\n", role.c_str());
    std::vector<std::vector<std::string>> rows;
    AddRows(schema, schema, "", &rows);
    if (rows.empty())
      std::printf("no options\n");
    else
      PrintTable({"OPTION", "EXPECTS", "DEFAULT", "MEANING"}, rows);
    if (const std::string about = schema.value("description", ""); !about.empty()) std::printf("\n%s\n", about.c_str());
  }
  return kFine;
}

// ---- validate -----------------------------------------------------------------------------------

const char* OutcomeName(CheckOutcome outcome) {
  constexpr const char* kNames[] = {"ok", "skipped", "warning", "FAILED"};
  return kNames[static_cast<int>(outcome)];
}

nlohmann::json ReadOptions(const std::string& file) {
  if (file.empty()) return nullptr;
  std::ifstream stream(file);
  if (!stream) throw Error(KGRPO_ERROR_NOT_FOUND, "cannot read " + file);
  nlohmann::json options = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!options.is_object()) throw Error(KGRPO_ERROR_INVALID, file + ": expected options as a JSON object");
  return options;
}

// Searches for a name; returns a path unchanged, since a library that does not load must be checkable too.
std::filesystem::path LibraryOf(const PluginLoader& loader, const std::string& plugin) {
  if (plugin.find('/') != std::string::npos || plugin.ends_with(".so")) return plugin;
  for (const std::filesystem::path& library : loader.Scan()) {
    if (library.stem() == plugin || library.stem() == "lib" + plugin) return library;
  }
  throw loader.NotFound(plugin);
}

int Validate(const Globals& globals, const std::vector<std::string>& plugins, const ValidateOptions& options,
             bool as_json) {
  Session session(globals);
  Json all = Json::array();
  bool fine = true;
  std::vector<std::filesystem::path> paths;  // resolves all names first: a misspelt one ends the command at once
  paths.reserve(plugins.size());
  for (const std::string& plugin : plugins) paths.push_back(LibraryOf(session.loader(), plugin));
  for (const std::filesystem::path& path : paths) {
    const std::vector<ContractCheck> checks = ValidatePlugin(path, options);
    Json rows = Json::array();
    size_t failed = 0, warnings = 0, skipped = 0;
    std::map<std::string, std::string> shown;  // by detail: the first check that failed with it
    if (!as_json) std::printf("%s\n", path.c_str());
    for (const ContractCheck& check : checks) {
      failed += check.outcome == CheckOutcome::kFailed ? 1 : 0;
      warnings += check.outcome == CheckOutcome::kWarning ? 1 : 0;
      skipped += check.outcome == CheckOutcome::kSkipped ? 1 : 0;
      rows.push_back({{"check", check.name},
                      {"passed", check.outcome != CheckOutcome::kFailed},
                      {"outcome", OutcomeName(check.outcome)},
                      {"detail", check.detail}});
      if (as_json) continue;
      std::string detail = check.detail;
      if (check.outcome == CheckOutcome::kFailed && !shown.emplace(detail, check.name).second)
        detail = "as \"" + shown[detail] + "\"";
      std::printf("  %-7s  %s%s%s\n", OutcomeName(check.outcome), check.name.c_str(), detail.empty() ? "" : ": ",
                  detail.c_str());
    }
    if (!as_json)
      std::printf("  %zu checks, %zu failed, %zu warning%s%s\n", checks.size(), failed, warnings,
                  warnings == 1 ? "" : "s",
                  skipped == 0 ? "" : (", " + std::to_string(skipped) + " skipped: why stands above").c_str());
    all.push_back({{"path", path.string()}, {"passed", failed == 0}, {"warnings", warnings}, {"checks", rows}});
    fine = fine && failed == 0;
  }
  if (as_json) PrintJson(all);
  return fine ? kFine : kBadInput;
}

}  // namespace

void AddPluginsCommand(CLI::App& app, const Globals& globals, Action* action) {
  struct Options {
    std::string name;
    std::vector<std::string> paths;
    std::string options_file;
    int seconds = ValidateOptions().seconds;
    std::string problem;
    bool send = false;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plugins", "List, describe, validate and begin plugins");
  command->require_subcommand(1);
  command->footer("Example:\n  kgrpo-host plugins list");

  CLI::App* list = command->add_subcommand("list", "The plugins in the plugin folders");
  list->add_flag("--json", options->json, "Print as JSON");
  list->footer("Example:\n  kgrpo-host plugins list --plugin-path ~/my-plugins");
  list->callback([=, &globals] { *action = [=, &globals] { return List(globals, options->json); }; });

  CLI::App* describe = command->add_subcommand("describe", "A plugin's options");
  describe->add_option("NAME", options->name, "A plugin's name, or its library's path")->required();
  describe->add_flag("--json", options->json, "Print the JSON Schemas");
  describe->footer("Example:\n  kgrpo-host plugins describe reward_speedup");
  describe->callback(
      [=, &globals] { *action = [=, &globals] { return Describe(globals, options->name, options->json); }; });

  CLI::App* validate = command->add_subcommand("validate", "Check that a plugin obeys the ABI");
  validate->add_option("PLUGIN", options->paths, "Names or paths")->required();
  validate
      ->add_option("--options", options->options_file,
                   "The plugin's options as a pipeline gives them; for a plugin with several interfaces, an object "
                   "keyed by role")
      ->type_name("FILE.json");
  validate->add_option("--timeout", options->seconds, "Seconds that the calls of one interface may take")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  validate->add_flag("--send", options->send, "Let a coder send one request to its service, which may cost money");
  validate->add_option("--problem", options->problem, "A problem that an evaluator judges: its reference, many times")
      ->type_name("DIR");
  validate->add_flag("--json", options->json, "Print as JSON");
  validate->footer("Example:\n  kgrpo-host plugins validate build/lib/kgrpo/reward_speedup.so");
  validate->callback([=, &globals] {
    *action = [=, &globals] {
      const ValidateOptions chosen = {ReadOptions(options->options_file), options->seconds, options->send,
                                      options->problem};
      return Validate(globals, options->paths, chosen, options->json);
    };
  });
  AddPluginsNewCommand(command, action);
}

}  // namespace kgrpo::cli
