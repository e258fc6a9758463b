// kgrpo-validate, which `kgrpo-host plugins list`, describe and validate run. Here: validate.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kgrpo/sdk/error.h>
#include "cli/command_line.h"
#include "plugin/loader.h"
#include "validate/plugins_command.h"
#include "validate/validate.h"

namespace kgrpo::validate {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> plugins;
  std::string options_file;
  ValidateOptions options;
  bool json = false;
};

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

void Print(const std::filesystem::path& path, const std::vector<ContractCheck>& checks) {
  std::printf("%s\n", path.c_str());
  std::map<CheckOutcome, size_t> counts;
  std::map<std::string, std::string> shown;  // by detail: the first check that failed with it
  for (const ContractCheck& check : checks) {
    ++counts[check.outcome];
    std::string detail = check.detail;
    if (check.outcome == CheckOutcome::kFailed && !shown.emplace(detail, check.name).second)
      detail = "as \"" + shown[detail] + "\"";
    std::printf("  %-7s  %s%s%s\n", OutcomeName(check.outcome), check.name.c_str(), detail.empty() ? "" : ": ",
                detail.c_str());
  }
  const size_t warnings = counts[CheckOutcome::kWarning], skipped = counts[CheckOutcome::kSkipped];
  std::printf("  %zu checks, %zu failed, %zu warning%s%s\n", checks.size(), counts[CheckOutcome::kFailed], warnings,
              warnings == 1 ? "" : "s",
              skipped == 0 ? "" : (", " + std::to_string(skipped) + " skipped: the reason is above").c_str());
}

Json ToJson(const std::filesystem::path& path, const std::vector<ContractCheck>& checks) {
  Json rows = Json::array();
  size_t failed = 0, warnings = 0;
  for (const ContractCheck& check : checks) {
    failed += check.outcome == CheckOutcome::kFailed ? 1 : 0;
    warnings += check.outcome == CheckOutcome::kWarning ? 1 : 0;
    rows.push_back({{"check", check.name},
                    {"passed", check.outcome != CheckOutcome::kFailed},
                    {"outcome", OutcomeName(check.outcome)},
                    {"detail", check.detail}});
  }
  return {{"path", path.string()}, {"passed", failed == 0}, {"warnings", warnings}, {"checks", rows}};
}

int Validate(const cli::Globals& globals, const Arguments& line) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);  // there is nothing to keep
  const PluginLoader loader(PluginDirectories(globals.plugin_path));
  std::vector<std::filesystem::path> paths;  // resolves all names first: a misspelt one ends the program at once
  paths.reserve(line.plugins.size());
  for (const std::string& plugin : line.plugins) paths.push_back(LibraryOf(loader, plugin));
  ValidateOptions options = line.options;
  options.options = ReadOptions(line.options_file);
  Json all = Json::array();
  bool fine = true;
  for (const std::filesystem::path& path : paths) {
    const std::vector<ContractCheck> checks = ValidatePlugin(path, options);
    if (!line.json) Print(path, checks);
    all.push_back(ToJson(path, checks));
    fine = fine && all.back()["passed"];
  }
  if (line.json) cli::PrintJson(all);
  return fine ? kFine : kBadInput;
}

void AddCommands(CLI::App& app, const cli::Globals& globals, cli::Action* action) {
  CLI::App* plugins = app.add_subcommand("plugins", "List, describe and validate plugins");
  plugins->require_subcommand(1);
  cli::AddPluginCommands(*plugins, globals, action);
  auto line = std::make_shared<Arguments>();
  CLI::App* command = plugins->add_subcommand(
      "validate",
      "Checks that a plugin obeys the ABI: calls every function of every interface with synthetic requests.");
  command->add_option("PLUGIN", line->plugins, "Names or paths")->required();
  command
      ->add_option("--options", line->options_file,
                   "The plugin's options as a pipeline gives them; for a plugin with several interfaces, an object "
                   "keyed by role")
      ->type_name("FILE.json");
  command->add_option("--timeout", line->options.seconds, "Seconds that the calls of one interface may take")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->add_flag("--send", line->options.send, "Let a coder send one request to its service, which may cost money");
  command
      ->add_option("--problem", line->options.problem, "A problem that an evaluator judges: its reference, many times")
      ->type_name("DIR");
  command->add_flag("--json", line->json, "Print as JSON");
  command->footer("Example:\n  kgrpo-host plugins validate build/lib/kgrpo/reward_speedup.so");
  command->callback([=, &globals] { *action = [=, &globals] { return Validate(globals, *line); }; });
}

}  // namespace
}  // namespace kgrpo::validate

int main(int argc, char** argv) {
  kgrpo::cli::CommandLine line("Lists, describes and checks plugins.");
  line.Add(kgrpo::validate::AddCommands);
  return line.Run({argv + 1, argv + argc});
}
