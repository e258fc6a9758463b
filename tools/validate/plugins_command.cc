#include "validate/plugins_command.h"

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kgrpo/support/closest.h>  // JoinedText
#include "cli/command_line.h"
#include "cli/session.h"
#include "common/table.h"
#include "validate/catalog.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

// ---- list ---------------------------------------------------------------------------------------

int List(const Globals& globals, bool json) {
  Session session(globals);
  const std::vector<PluginSummary> plugins = ListPlugins(session.loader());
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
    if (plugin.error.empty()) rows.push_back({plugin.name, JoinedText(plugin.roles), plugin.version, plugin.summary});
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

}  // namespace

void AddPluginCommands(CLI::App& plugins, const Globals& globals, Action* action) {
  struct Options {
    std::string name;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* list = plugins.add_subcommand("list", "The plugins in the plugin folders");
  list->add_flag("--json", options->json, "Print as JSON");
  list->footer("Example:\n  kgrpo-host plugins list --plugin-path ~/my-plugins");
  list->callback([=, &globals] { *action = [=, &globals] { return List(globals, options->json); }; });

  CLI::App* describe = plugins.add_subcommand("describe", "A plugin's options");
  describe->add_option("NAME", options->name, "A plugin's name, or its library's path")->required();
  describe->add_flag("--json", options->json, "Print the JSON Schemas");
  describe->footer("Example:\n  kgrpo-host plugins describe reward_speedup");
  describe->callback(
      [=, &globals] { *action = [=, &globals] { return Describe(globals, options->name, options->json); }; });
}

}  // namespace kgrpo::cli
