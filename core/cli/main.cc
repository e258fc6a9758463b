// kgrpo-host: chooses the command, and runs it or the program that does its work.
#include <kgrpo/support/closest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>  // setenv
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/directories.h"  // HostFolder
#include "cli/become_program.h"
#include "cli/command_line.h"

namespace kgrpo::cli {
namespace {

// `kgrpo-host FILE ...` means `kgrpo-host run FILE ...`. Returns false after a message when the first word is neither a
// command nor a file.
bool InsertRun(const std::vector<std::string>& commands, std::vector<std::string>* arguments) {
  for (size_t i = 0; i < arguments->size(); ++i) {
    const std::string& argument = (*arguments)[i];
    if (argument == "--plugin-path" || argument == "--set") {
      ++i;  // skips the value
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

// Returns the places of the command and its subcommand, as far as they are given.
std::vector<size_t> WordPlaces(const std::vector<std::string>& arguments) {
  std::vector<size_t> words;
  for (size_t i = 0; i < arguments.size() && words.size() < 2; ++i) {
    if (arguments[i] == "--plugin-path") {
      ++i;  // skips the value
    } else if (!arguments[i].starts_with("-")) {
      words.push_back(i);
    }
  }
  return words;
}

// Returns false, after a message, if a command with subcommands is not followed by one of them. True for all other
// commands and for help.
bool NamesSubcommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<size_t> words = WordPlaces(arguments);
  if (words.empty()) return true;
  const auto end = arguments.begin() + static_cast<std::ptrdiff_t>(words.size() < 2 ? arguments.size() : words[1]);
  for (const char* help : {"-h", "--help", "--version"}) {
    if (std::find(arguments.begin(), end, help) != end) return true;
  }
  const CLI::App* command = nullptr;
  for (const CLI::App* known : app.get_subcommands({})) {
    if (known->get_name() == arguments[words[0]]) command = known;
  }
  if (command == nullptr) return true;
  const std::string word = words.size() < 2 ? "" : arguments[words[1]];
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

// Commands that are other programs. Most share this command line: `kgrpo-host eval X` runs `kgrpo-eval eval X`. A row
// without a program is a command whose subcommands follow; the last row that fits is run. Paths are relative to this
// program's folder.
struct OtherProgram {
  std::string_view command, subcommand;
  const char *program, *description;
  bool only_rest = false;  // gets only the arguments after its words: `plugins new X` runs `kgrpo-new-plugin X`
};
constexpr OtherProgram kOtherPrograms[] = {
    {"plugins", "", nullptr, "List, describe, validate and begin plugins"},
    {"plugins", "list", "kgrpo-validate", "The plugins in the plugin folders"},
    {"plugins", "describe", "kgrpo-validate", "A plugin's options"},
    {"plugins", "validate", "kgrpo-validate", "Check that a plugin obeys the ABI"},
    {"plugins", "new", "kgrpo-new-plugin", "Create a plugin project: it builds, validates and has a test", true},
    {"problems", "", nullptr, "List, check, draft and import problem folders"},
    {"problems", "list", "kgrpo-eval", "Name, family, split and traits of each"},
    {"problems", "check", "kgrpo-eval", "Find degenerate problems, and judge each one's reference kernel"},
    {"problems", "new", "../lib/kgrpo/evaluator/kgrpo_draft_problem", "Draft a problem folder from a kernel", true},
    {"problems", "import", "../lib/kgrpo/import_kernelbench/import_kernelbench.py", "Import a data set of problems",
     true},
    {"optimize", "", "kgrpo-optimize", "Search for a faster kernel of one problem"},
    {"compare", "", "kgrpo-report", "Is one configuration better than another?"},
    {"report", "", "kgrpo-report", "One page that shows runs, every sample included"},
    {"export", "", "kgrpo-report", "Samples of a run as files that other tools open"},
    {"eval", "", "kgrpo-eval", "Evaluate kernels, or a policy on held-out problems"},
    {"eval", "suite", "../share/kgrpo/python/kernel_suite.py",
     "Evaluate a kernel for each problem of a folder, and count fast_p"},
    {"coder-check", "", "kgrpo-eval", "Ask a pipeline's coder once, and show request, answer and cost"},
    {"serve", "", "kgrpo-serve", "Judge kernels for other programs and machines, over HTTP"},
    {"mcp", "", "../share/kgrpo/python/kgrpo_mcp.py", "The evaluator as tools for coding agents, over MCP", true},
    {"merge", "", "kgrpo-report", "An adapter and its base as one whole model"}};

// Adds the commands, so that help lists them and a misspelt one is told the closest.
void AddOtherPrograms(CLI::App* app) {
  for (const OtherProgram& other : kOtherPrograms) {
    const std::string command(other.command);
    if (!other.subcommand.empty()) {
      app->get_subcommand(command)->add_subcommand(std::string(other.subcommand), other.description);
    } else {
      CLI::App* added = app->add_subcommand(command, other.description);
      if (other.program == nullptr) added->require_subcommand(1)->footer("Example:\n  kgrpo-host " + command + " list");
    }
  }
}

// Runs the program of such a command in place of this process. Returns for other commands.
void RunOtherProgram(const std::vector<std::string>& arguments) {
  const std::vector<size_t> words = WordPlaces(arguments);
  // From the end: a command's subcommands stand behind it.
  for (auto at = std::rbegin(kOtherPrograms); at != std::rend(kOtherPrograms); ++at) {
    const OtherProgram& other = *at;
    const size_t own = other.subcommand.empty() ? 1 : 2;
    if (other.program == nullptr || words.size() < own || arguments[words[0]] != other.command) continue;
    if (own == 2 && arguments[words[1]] != other.subcommand) continue;
    const std::filesystem::path program = (HostFolder() / other.program).lexically_normal();
    std::vector<std::string> line = {program.string()};
    std::string advice = "build the target " + program.stem().string();
    if (program.extension() == ".py") {
      line.insert(line.begin(), ChosenPython());
      advice = "set KGRPO_PYTHON to a Python that has the packages it needs";
      setenv("KGRPO_HOST", (HostFolder() / "kgrpo-host").c_str(), 1);  // what the script calls
    }
    const size_t first = other.only_rest ? words[own - 1] + 1 : 0;
    line.insert(line.end(), arguments.begin() + static_cast<std::ptrdiff_t>(first), arguments.end());
    BecomeProgram(std::move(line), advice);
  }
}

int Main(const std::vector<std::string>& given) {
  CommandLine line("Trains a language model to suggest optimisations of CUDA kernels.");
  line.app().footer(
      "Examples:\n"
      "  kgrpo-host eval kernel mine.cu --problem softmax_long\n"
      "                                                is my kernel correct, and how fast?\n"
      "  kgrpo-host configs/quickstart.yaml            run a pipeline\n"
      "  kgrpo-host check configs/seed.yaml            the file, its plugins and problems\n"
      "  kgrpo-host compare runs/one runs/two          is one better than the other?\n"
      "  kgrpo-host report runs/one                    one page that shows a run, every sample included\n"
      "  kgrpo-host plugins list                       what there is to choose from\n"
      "Exit codes: 0 fine, 1 the run failed, 2 wrong usage, 3 bad input, 4 something needed is missing, 130 "
      "interrupted.");
  for (auto* add : {AddRunCommand, AddResumeCommand, AddCheckCommand}) line.Add(add);
  AddOtherPrograms(&line.app());
  std::vector<std::string> commands;
  for (const CLI::App* command : line.app().get_subcommands({})) commands.push_back(command->get_name());
  return ReportErrors([&] {
    RunOtherProgram(given);
    std::vector<std::string> arguments = given;
    if (!InsertRun(commands, &arguments) || !NamesSubcommand(line.app(), arguments)) return static_cast<int>(kUsage);
    return line.Run(std::move(arguments));
  });
}

}  // namespace
}  // namespace kgrpo::cli

int main(int argc, char** argv) { return kgrpo::cli::Main({argv + 1, argv + argc}); }
