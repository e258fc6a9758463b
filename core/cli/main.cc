// kgrpo-host: the command line. Chooses the command, runs it, and turns what it throws into a message and an exit code.
#include <kgrpo/abi.h>
#include <kgrpo/support/closest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/directories.h"  // HostFolder
#include "base/faults.h"
#include "base/log.h"
#include "cli/become_program.h"
#include "cli/command.h"
#include "config/diagnostic.h"
#include "config/hidden_keys.h"

namespace kgrpo::cli {
namespace {

// `kgrpo-host FILE ...` means `kgrpo-host run FILE ...`. Returns false after a message when the first word is neither a
// command nor a file.
bool InsertRun(const std::vector<std::string>& commands, std::vector<std::string>* arguments) {
  for (size_t i = 0; i < arguments->size(); ++i) {
    const std::string& argument = (*arguments)[i];
    if (argument == "--plugin-path" || argument == "--set") {
      ++i;  // its value
      continue;
    }
    if (argument.starts_with("-")) continue;
    if (std::find(commands.begin(), commands.end(), argument) != commands.end()) return true;
    std::error_code error;
    const bool names_file =
        argument.find_first_of("./") != std::string::npos || std::filesystem::exists(argument, error);
    if (!names_file) {
      const std::string closest = Closest(argument, commands);
      std::fprintf(
          stderr, "\"%s\" is neither a command nor a pipeline file%s%s%s (kgrpo-host --help lists the commands)\n",
          argument.c_str(), closest.empty() ? "" : "; did you mean \"", closest.c_str(), closest.empty() ? "" : "\"?");
      return false;
    }
    arguments->insert(arguments->begin(), "run");
    return true;
  }
  return true;
}

// Returns false, after a message, if a command with subcommands is not followed by one of them. True for all other
// commands and for help.
bool NamesSubcommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = nullptr;
  std::string word;
  for (size_t i = 0; i < arguments.size() && word.empty(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-h" || argument == "--help" || argument == "--version") return true;
    if (argument == "--plugin-path") ++i;  // its value
    if (argument.starts_with("-")) continue;
    if (command != nullptr) {
      word = argument;
      continue;
    }
    for (const CLI::App* known : app.get_subcommands({})) {
      if (known->get_name() == argument) command = known;
    }
    if (command == nullptr) return true;
  }
  if (command == nullptr) return true;
  const std::vector<const CLI::App*> own = command->get_subcommands({});
  std::vector<std::string> names;
  names.reserve(own.size());
  for (const CLI::App* one : own) names.push_back(one->get_name());
  if (own.empty() || std::find(names.begin(), names.end(), word) != names.end()) return true;

  const std::string closest = Closest(word, names);
  std::string message = word.empty() ? command->get_name() + " needs one of its commands"
                                     : "\"" + word + "\" is no command of " + command->get_name();
  if (!closest.empty()) message += "; did you mean \"" + closest + "\"?";
  std::fprintf(stderr, "%s\n", message.c_str());
  for (const CLI::App* one : own)
    std::fprintf(stderr, "  %-10s %s\n", one->get_name().c_str(), one->get_description().c_str());
  return false;
}

// The message may contain an API key that the user wrote at a wrong place, such as the name of a folder.
void PrintError(std::string message) {
  HideKeys(&message);
  std::fprintf(stderr, "error: %s\n", message.c_str());
}

// Commands that are other programs, in this program's folder: `kgrpo-host plugins validate X` runs `kgrpo-validate X`.
struct OtherProgram {
  std::string_view command, subcommand;
  const char* program;
};
constexpr OtherProgram kOtherPrograms[] = {{"plugins", "validate", "kgrpo-validate"},
                                           {"problems", "new", "../lib/kgrpo/evaluator/kgrpo_draft_problem"}};

// Runs the program of such a command in place of this process, with all other arguments. Returns for other commands.
void RunOtherProgram(const std::vector<std::string>& arguments) {
  std::vector<size_t> words;  // places of the command and its subcommand
  for (size_t i = 0; i < arguments.size() && words.size() < 2; ++i) {
    if (arguments[i] == "--plugin-path")
      ++i;  // its value
    else if (!arguments[i].starts_with("-"))
      words.push_back(i);
  }
  if (words.size() < 2) return;
  for (const OtherProgram& other : kOtherPrograms) {
    if (arguments[words[0]] != other.command || arguments[words[1]] != other.subcommand) continue;
    std::vector<std::string> line = {(HostFolder() / other.program).string()};
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (i != words[0] && i != words[1]) line.push_back(arguments[i]);
    }
    BecomeProgram(std::move(line), "build the target " + std::filesystem::path(other.program).filename().string());
  }
}

int Main(int argc, char** argv) {
  // If the parent ignores SIGCHLD, this process inherits that: exit codes of children would be lost, and waiting would
  // fail.
  std::signal(SIGCHLD, SIG_DFL);
  CLI::App app("Trains a language model to suggest optimisations of CUDA kernels.", "kgrpo-host");
  app.set_version_flag("--version", "kgrpo-host " KGRPO_VERSION " (plugin ABI " + std::to_string(KGRPO_ABI_MAJOR) +
                                        "." + std::to_string(KGRPO_ABI_MINOR) + ")");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(
      "Examples:\n"
      "  kgrpo-host configs/quickstart.yaml            run a pipeline\n"
      "  kgrpo-host check configs/seed.yaml            the file, its plugins and problems\n"
      "  kgrpo-host compare runs/one runs/two          is one better than the other?\n"
      "  kgrpo-host report runs/one                    one page that shows a run, every sample included\n"
      "  kgrpo-host plugins list                       what there is to choose from\n"
      "Exit codes: 0 fine, 1 the run failed, 2 wrong usage, 3 bad input, 4 something needed is missing, 130 "
      "interrupted.");

  Globals globals;
  app.add_option("--plugin-path", globals.plugin_path,
                 "Folders to search plugins in, before $KGRPO_PLUGIN_PATH and the host's own")
      ->type_name("DIR[:DIR...]")
      ->expected(1)
      ->allow_extra_args(false)  // the next argument may be the pipeline
      ->take_all();
  app.add_flag("-v,--verbose", globals.verbose, "Log more");
  app.add_flag("-q,--quiet", globals.quiet, "Log warnings only; no progress");

  Action action;
  for (auto* add :
       {AddRunCommand, AddResumeCommand, AddCheckCommand, AddCompareCommand, AddReportCommand, AddExportCommand,
        AddCoderCheckCommand, AddEvalCommand, AddOptimizeCommand, AddPluginsCommand, AddProblemsCommand,
        AddServeCommand, AddTokenizeCommand, AddScoreCommand, AddGenerateCommand, AddMergeCommand, AddUpdateCommand}) {
    add(app, globals, &action);
  }
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());

  std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    RunOtherProgram(arguments);
  } catch (const Error& error) {
    PrintError(error.what());
    return ExitCodeOf(error.code());
  }
  if (!InsertRun(commands, &arguments) || !NamesSubcommand(app, arguments)) return kUsage;
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFine : kUsage;  // help and version are no errors
  }
  InitLog(globals.verbose ? LogLevel::kDebug : globals.quiet ? LogLevel::kWarning : LogLevel::kInfo);
  HandleSignals();
  ExplainFaults();
  try {
    return action();
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

}  // namespace

}  // namespace kgrpo::cli

int main(int argc, char** argv) {
  const int code = kgrpo::cli::Main(argc, argv);
  kgrpo::ExpectExit();
  return code;
}
