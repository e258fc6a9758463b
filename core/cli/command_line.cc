#include "cli/command_line.h"

#include <kgrpo/abi.h>
#include <kgrpo/support/dump_json.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/cancel.h"
#include "base/console.h"  // TerminalColumns, Wrap
#include "base/faults.h"
#include "base/log.h"
#include "config/diagnostic.h"
#include "config/hidden_keys.h"

namespace kgrpo::cli {

namespace {

// Descriptions of options as lines that fit the terminal; as one line where the output is not a terminal.
class WrappedHelp : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_desc(option);
    constexpr size_t kNames = 30;  // CLI11's column of names
    const size_t columns = TerminalColumns();
    if (columns < 2 * kNames) return text;
    std::string lines;
    for (const std::string& line : Wrap(text, columns - kNames)) lines += (lines.empty() ? "" : "\n") + line;
    return lines;
  }
};

// True if the chosen command was given --json.
bool AsksForJson(const CLI::App& app) {
  const CLI::Option* json = app.get_option_no_throw("--json");
  if (json != nullptr && json->count() > 0) return true;
  return std::ranges::any_of(app.get_subcommands(), [](const CLI::App* chosen) { return AsksForJson(*chosen); });
}

// The word of an exit code in JSON.
const char* WordOf(int code) {
  switch (code) {
    case kBadInput: return "invalid";
    case kUnavailable: return "unavailable";
    case kInterrupted: return "interrupted";
    default: return "failed";
  }
}

}  // namespace

CommandLine::CommandLine(const std::string& description) : app_(description, "kgrpo-host") {
  app_.set_version_flag("--version", "kgrpo-host " KGRPO_VERSION " (plugin ABI " + std::to_string(KGRPO_ABI_MAJOR) +
                                         "." + std::to_string(KGRPO_ABI_MINOR) + ")");
  app_.formatter(std::make_shared<WrappedHelp>());
  app_.require_subcommand(1);
  app_.fallthrough();
  app_.add_option("--plugin-path", globals_.plugin_path,
                  "Folders to search plugins in, before $KGRPO_PLUGIN_PATH and the host's own")
      ->type_name("DIR[:DIR...]")
      ->expected(1)
      ->allow_extra_args(false)  // the next argument may be the pipeline
      ->take_all();
  app_.add_flag("-v,--verbose", globals_.verbose, "Log more");
  app_.add_flag("-q,--quiet", globals_.quiet, "Log warnings only; no progress");
}

int CommandLine::Run(std::vector<std::string> arguments) {
  // If the parent ignores SIGCHLD, this process inherits that: exit codes of children would be lost, and waiting would
  // fail.
  std::signal(SIGCHLD, SIG_DFL);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app_.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? kFine : kUsage;  // help and version are no errors
  }
  InitLog(globals_.verbose ? LogLevel::kDebug : globals_.quiet ? LogLevel::kWarning : LogLevel::kInfo);
  HandleSignals();
  ExplainFaults();
  const int code = ReportErrors(action_, AsksForJson(app_));
  ExpectExit();
  return code;
}

int ReportErrors(const std::function<int()>& work, bool as_json) {
  const auto told = [as_json](std::string message, int code) {
    HideKeys(&message);
    if (as_json) PrintJson({{"error", {{"code", WordOf(code)}, {"exit_code", code}, {"message", message}}}});
    return code;
  };
  try {
    return work();
  } catch (const ConfigError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return told(error.what(), kBadInput);
  } catch (const Error& error) {
    PrintError(error.what());
    return told(error.what(), ExitCodeOf(error.code()));
  } catch (const std::exception& error) {
    PrintError(error.what());
    return told(error.what(), kFailed);
  }
}

void PrintError(std::string message) {
  HideKeys(&message);
  std::fprintf(stderr, "error: %s\n", message.c_str());
}

void PrintJson(const nlohmann::ordered_json& json) { std::printf("%s\n", DumpJson(json, 2).c_str()); }

}  // namespace kgrpo::cli
