#include "cli/command_line.h"

#include <kgrpo/abi.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/cancel.h"
#include "base/faults.h"
#include "base/log.h"
#include "config/diagnostic.h"
#include "config/hidden_keys.h"
#include "store/json.h"

namespace kgrpo::cli {

CommandLine::CommandLine(const std::string& description) : app_(description, "kgrpo-host") {
  app_.set_version_flag("--version", "kgrpo-host " KGRPO_VERSION " (plugin ABI " + std::to_string(KGRPO_ABI_MAJOR) +
                                         "." + std::to_string(KGRPO_ABI_MINOR) + ")");
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
  const int code = ReportErrors(action_);
  ExpectExit();
  return code;
}

int ReportErrors(const std::function<int()>& work) {
  try {
    return work();
  } catch (const ConfigError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kBadInput;
  } catch (const Error& error) {
    PrintError(error.what());
    return ExitCodeOf(error.code());
  } catch (const std::exception& error) {
    PrintError(error.what());
    return kFailed;
  }
}

void PrintError(std::string message) {
  HideKeys(&message);
  std::fprintf(stderr, "error: %s\n", message.c_str());
}

void PrintJson(const nlohmann::ordered_json& json) {
  std::printf("%s\n", DumpJson(json, 2).c_str());
}

}  // namespace kgrpo::cli
