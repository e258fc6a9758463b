// kgrpo-validate: checks that plugins obey the ABI. `kgrpo-host plugins validate` runs it.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <kgrpo/sdk/error.h>
#include "base/log.h"
#include "cli/command_line.h"
#include "plugin/loader.h"
#include "validate/validate.h"

namespace kgrpo::validate {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> plugins, plugin_path;
  std::string options_file;
  ValidateOptions options;
  bool json = false, verbose = false, quiet = false;
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

ExitCode Validate(const Arguments& line) {
  const PluginLoader loader(PluginDirectories(line.plugin_path));
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
  if (line.json) std::printf("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return fine ? kFine : kBadInput;
}

int Main(int argc, char** argv) {
  std::signal(SIGCHLD, SIG_DFL);  // a parent that ignores it would hide how children end
  Arguments line;
  CLI::App app("Checks that a plugin obeys the ABI: calls every function of every interface with synthetic requests.",
               "kgrpo-host plugins validate");
  app.add_option("PLUGIN", line.plugins, "Names or paths")->required();
  app.add_option("--options", line.options_file,
                 "The plugin's options as a pipeline gives them; for a plugin with several interfaces, an object "
                 "keyed by role")
      ->type_name("FILE.json");
  app.add_option("--timeout", line.options.seconds, "Seconds that the calls of one interface may take")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_flag("--send", line.options.send, "Let a coder send one request to its service, which may cost money");
  app.add_option("--problem", line.options.problem, "A problem that an evaluator judges: its reference, many times")
      ->type_name("DIR");
  app.add_flag("--json", line.json, "Print as JSON");
  app.add_option("--plugin-path", line.plugin_path, "Folders to search plugins in, as of kgrpo-host")
      ->type_name("DIR[:DIR...]")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  app.add_flag("-v,--verbose", line.verbose, "Log more");
  app.add_flag("-q,--quiet", line.quiet, "Log warnings only");
  app.footer("Example:\n  kgrpo-host plugins validate build/lib/kgrpo/reward_speedup.so");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFine : kUsage;  // help is no error
  }
  InitLog(line.verbose ? LogLevel::kDebug : line.quiet ? LogLevel::kWarning : LogLevel::kInfo);
  return cli::ReportErrors([&] { return static_cast<int>(Validate(line)); });
}

}  // namespace
}  // namespace kgrpo::validate

int main(int argc, char** argv) {
  return kgrpo::validate::Main(argc, argv);
}
