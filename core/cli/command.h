// Types shared by all commands. A program's main.cc adds each to its command line; exactly one action runs.
#ifndef KGRPO_CLI_COMMAND_H
#define KGRPO_CLI_COMMAND_H

#include <kgrpo/sdk/error.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/exit_code.h"

namespace kgrpo::cli {

// Options of every command.
struct Globals {
  std::vector<std::string> plugin_path;
  bool verbose = false;
  bool quiet = false;
};

// The work of the chosen command; returns the exit code, or throws.
using Action = std::function<int()>;

// Each adds one command with its options. If the user chose that command, *action receives its work.
void AddRunCommand(CLI::App& app, const Globals& globals, Action* action);
void AddResumeCommand(CLI::App& app, const Globals& globals, Action* action);
void AddCheckCommand(CLI::App& app, const Globals& globals, Action* action);

// `--set KEY=VALUE`, any number of times. Each takes one value, so that it does not consume the arguments after it.
inline CLI::Option* AddSetOption(CLI::App* command, std::vector<std::string>* settings, const std::string& what) {
  return command->add_option("--set", *settings, what)->type_name("KEY=VALUE")->expected(1)->take_all();
}

// `--include DIR`, any number of times. `besides`: the folders that are searched in any case.
inline CLI::Option* AddIncludeOption(CLI::App* command, std::vector<std::string>* folders, const std::string& besides) {
  return command->add_option("--include", *folders, "A folder of own headers, besides " + besides)
      ->type_name("DIR")
      ->expected(1)
      ->take_all();
}

}  // namespace kgrpo::cli
#endif
