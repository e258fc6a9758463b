// The command line that kgrpo-host and the programs of its other commands share: the options of every command, and the
// way from what a command throws to a message and an exit code. Used by their main.cc, and PrintJson by commands.
#ifndef KGRPO_CLI_COMMAND_LINE_H
#define KGRPO_CLI_COMMAND_LINE_H

#include "cli/command.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kgrpo::cli {

class CommandLine {
 public:
  explicit CommandLine(const std::string& description);

  CLI::App& app() { return app_; }
  void Add(void (*add)(CLI::App& app, const Globals& globals, Action* action)) { add(app_, globals_, &action_); }

  // Parses the arguments (without the program's name) and runs the chosen command. Returns the exit code.
  int Run(std::vector<std::string> arguments);

 private:
  CLI::App app_;
  Globals globals_;
  Action action_;
};

// Runs `work`. Prints what it throws on standard error, with `as_json` also on standard output as
// {"error": {code, exit_code, message}}, and returns its exit code.
int ReportErrors(const std::function<int()>& work, bool as_json = false);

// Prints "error: MESSAGE" without keys of services: the user may have written one at a wrong place, such as a folder's
// name.
void PrintError(std::string message);

// Prints indented JSON on standard output, for --json. Bytes that are not UTF-8 become U+FFFD.
void PrintJson(const nlohmann::ordered_json& json);

}  // namespace kgrpo::cli
#endif
