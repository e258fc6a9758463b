// `kgrpo-host problems new KERNEL.cu`: runs the evaluators' program that drafts a problem folder from a kernel, since
// the evaluators define the problem format.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

// Arguments passed to the program unchanged.
struct NewOptions {
  std::string file;
  std::vector<std::pair<std::string, std::vector<std::string>>> values;
};

int NewProblem(const NewOptions& options) {
  std::error_code code;
  const fs::path host = fs::read_symlink("/proc/self/exe", code);
  const std::string program =
      (host.parent_path() / "../lib/kgrpo/evaluator/kgrpo_draft_problem").lexically_normal().string();
  std::vector<std::string> words = {program, options.file};
  for (const auto& [option, values] : options.values) {
    for (const std::string& value : values) {
      words.push_back(option);
      words.push_back(value);
    }
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), arguments.data());
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              program + ": " + std::strerror(errno) + "; build the target kgrpo_draft_problem");
}

}  // namespace

void AddNewCommand(CLI::App* problems, Action* action) {
  auto options = std::make_shared<NewOptions>();
  CLI::App* command = problems->add_subcommand("new", "Draft a problem folder from a kernel");
  command->add_option("KERNEL.cu", options->file, "A CUDA file with a launcher, or with one __global__ kernel")
      ->required();
  struct Row {
    const char *option, *type, *description;
  };
  static constexpr Row kRows[] = {
      {"--out", "DIR", "The folder to write (default: the file's name without .cu); must not exist"},
      {"--function", "NAME", "The launcher or kernel, where the file has several"},
      {"--size", "NAME=N", "A size and its value for timing: n=1048576"},
      {"--multiple", "NAME=N", "Every size of NAME is a multiple of N"},
      {"--shape", "NAME=D,D", "A tensor's dimensions: x=rows,cols"},
      {"--input", "NAME", "A tensor that is only read"},
      {"--output", "NAME", "A tensor that is only written"},
      {"--inout", "NAME", "A tensor that is read and written"},
      {"--value", "NAME=X", "A scalar's value, in place of a size: alpha=0.5"},
      {"--range", "NAME=LO,HI", "The bounds of an integer input, both included: index=0,rows-1"},
      {"--grid", "X,Y,Z", "Blocks of a kernel without a launcher, as expressions: rows"},
      {"--block", "X,Y,Z", "Its threads a block (default: 256, or 16,16)"},
      {"--shared", "BYTES", "Its dynamic shared memory"}};
  for (const Row& row : kRows) options->values.emplace_back(row.option, std::vector<std::string>());
  for (size_t i = 0; i < options->values.size(); ++i) {
    command->add_option(kRows[i].option, options->values[i].second, kRows[i].description)
        ->type_name(kRows[i].type)
        ->expected(1)
        ->take_all();
  }
  command->footer(
      "Reads parameters and their roles from the signature and the uses. Asks on a terminal for what it cannot know;\n"
      "elsewhere it names the option that is missing. Then: kgrpo-host problems check DIR.\n"
      "Examples:\n"
      "  kgrpo-host problems new saxpy.cu --size n=4194304 --value a=2.5\n"
      "  kgrpo-host problems new softmax.cu --out mine/softmax --size rows=512 --size cols=4096 \\\n"
      "    --shape x=rows,cols --shape out=rows,cols --grid rows --block 128");
  command->callback([=] { *action = [=] { return NewProblem(*options); }; });
}

}  // namespace kgrpo::cli
