// `kgrpo-host problems import kernelbench PATH --out DIR`: runs the Python program that imports the data set
// (scripts/import_kernelbench), since only PyTorch can read its problems. Judging imported problems needs no Python.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/directories.h"
#include "cli/become_program.h"
#include "cli/command.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::string format, path, python;
  // Options and values passed to the program unchanged.
  std::vector<std::pair<std::string, std::string>> values;
  bool json = false;
};

// The program: beside the host's own plugins, where the build puts it.
std::string ProgramOf(const std::string& format) {
  std::error_code code;
  const fs::path program =
      (HostFolder() / "../lib/kgrpo" / ("import_" + format) / ("import_" + format + ".py")).lexically_normal();
  if (!fs::exists(program, code))
    throw Error(KGRPO_ERROR_UNAVAILABLE, program.string() + ": is missing; build the target import_kernelbench");
  return program.string();
}

// Returns the Python that should have PyTorch: --python, else KGRPO_PYTHON, else python3 of PATH.
std::string PythonOf(const ImportOptions& options) {
  if (!options.python.empty()) return options.python;
  const char* named = std::getenv("KGRPO_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

int Import(const ImportOptions& options) {
  const std::string python = PythonOf(options);
  std::vector<std::string> words = {python, ProgramOf(options.format), options.path};
  for (const auto& [option, value] : options.values) {
    if (value.empty()) continue;
    words.push_back(option);
    words.push_back(value);
  }
  if (options.json) words.emplace_back("--json");
  BecomeProgram(std::move(words), "name a Python that has PyTorch by --python PATH or KGRPO_PYTHON");
}

}  // namespace

void AddImportCommand(CLI::App* problems, Action* action) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = problems->add_subcommand("import", "Import a data set of problems");
  command->add_option("FORMAT", options->format, "What PATH is: kernelbench")
      ->required()
      ->check(CLI::IsMember({"kernelbench"}));
  command->add_option("PATH", options->path, "A clone of the data set, or a folder of its parquet files")->required();
  options->values = {{"--out", ""},   {"--level", ""}, {"--only", ""},   {"--precision", ""},
                     {"--sizes", ""}, {"--jobs", ""},  {"--memory", ""}, {"--seconds", ""}};
  const char* descriptions[] = {
      "Output folder: receives one folder per problem",
      "Levels, such as 1,2,3 (default: all three)",
      "Only problems of these numbers, such as 1,7",
      "fp32 (default), fp16 or bf16",
      "The timing size: original (default), or small, which suits an evaluator without a device",
      "Problems at once (default: as many as cores)",
      "GB of memory that one problem may take (default: 10)",
      "Seconds that one problem may take (default: 400)"};
  for (size_t i = 0; i < options->values.size(); ++i) {
    CLI::Option* option =
        command->add_option(options->values[i].first, options->values[i].second, descriptions[i])->type_name("VALUE");
    if (i == 0) option->required()->type_name("DIR");
  }
  command->add_option("--python", options->python, "The Python that has PyTorch (default: KGRPO_PYTHON, else python3)")
      ->type_name("PATH");
  command->add_flag("--json", options->json, "Print the summary as JSON");
  command->footer(
      "A stopped import continues where it was. The summary ends with the refused problems and the reasons.\n"
      "Example:\n  kgrpo-host problems import kernelbench KernelBench/ --out kernelbench --sizes small");
  command->callback([=] { *action = [=] { return Import(*options); }; });
}

}  // namespace kgrpo::cli
