// kgrpo_draft_problem KERNEL.cu [OPTIONS]: what `kgrpo-host problems new` runs. Exit codes are the host's: 0 fine, 2
// the command line, 3 bad input.
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "cuda_source/own_headers.h"
#include "draft/draft.h"
#include "draft/oracle_text.h"
#include "draft/problem_text.h"

namespace kgrpo::evaluator {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2, kBadInput = 3;

// Of --out; a missing option's value is "".
struct Words {
  std::string file, out, torch, python, checker;
  bool reference_only = false;
  DraftOptions options;
};

// An option that may be repeated: NAME=VALUE, with `plain` VALUE alone, with `name` NAME alone.
struct OptionRow {
  const char *option, *type, *description;
  enum class Form { kNameValue, kPlain, kName } form;
};
using Form = OptionRow::Form;
constexpr OptionRow kRows[] = {
    {"function", "NAME", "The launcher or kernel, if the file has several; of a template: 'k<float,256>'",
     Form::kPlain},
    {"size", "NAME=N", "A size and its value for timing: n=1048576", Form::kNameValue},
    {"multiple", "NAME=N", "Every size of NAME is a multiple of N", Form::kNameValue},
    {"shape", "NAME=D,D", "A tensor's dimensions: x=rows,cols", Form::kNameValue},
    {"input", "NAME", "A tensor that is only read", Form::kName},
    {"output", "NAME", "A tensor that is only written", Form::kName},
    {"inout", "NAME", "A tensor that is read and written", Form::kName},
    {"value", "NAME=X", "A scalar's value, in place of a size: alpha=0.5", Form::kNameValue},
    {"range", "NAME=LO,HI", "The bounds of an integer input, both included: index=0,rows-1", Form::kNameValue},
    {"grid", "X,Y,Z", "Blocks of a kernel without a launcher, as expressions: rows", Form::kPlain},
    {"block", "X,Y,Z", "Its threads a block (default: 256, or 16,16)", Form::kPlain},
    {"shared", "BYTES", "Its dynamic shared memory", Form::kPlain},
    {"include", "DIR", "A folder of the file's own headers, besides the one it lies in", Form::kName},
    {"allow", "LIB", "A library that kernels may include: cub, thrust", Form::kName}};

void AddOptions(CLI::App& app, Words* words) {
  app.add_option("KERNEL.cu", words->file, "A CUDA file with a launcher, or with one __global__ kernel")->required();
  app.add_option("-o,--out", words->out, "The folder to write (default: the file's name without .cu); must not exist")
      ->type_name("DIR");
  CLI::Option* torch =
      app.add_option("--torch", words->torch,
                     "A PyTorch function of the inputs that returns the outputs: the oracle, in float64")
          ->type_name("FILE.py[:NAME]");
  app.add_option("--python", words->python, "The Python that has PyTorch (default: KGRPO_PYTHON, else python3)")
      ->type_name("PATH");
  CLI::Option* checker =
      app.add_option("--checker", words->checker,
                     "checker.cc in place of an oracle, if several outputs are right: your file, or `new` for a draft")
          ->type_name("FILE.cc|new")
          ->excludes(torch);
  app.add_flag("--reference-only", words->reference_only,
               "No oracle: kernels are compared with the reference's own results")
      ->excludes(torch)
      ->excludes(checker);
  for (const OptionRow& row : kRows) {
    const auto take = [words, &row](const std::string& text) {
      std::map<std::string, std::string>& values = words->options[row.option];
      const size_t equals = text.find('=');
      if (row.form == Form::kPlain)
        values[""] = text;
      else if (row.form == Form::kName)
        values[text] = "";
      else if (equals == std::string::npos || equals == 0)
        throw CLI::ValidationError("--" + std::string(row.option) + " " + text, "expected NAME=VALUE");
      else
        values[text.substr(0, equals)] = text.substr(equals + 1);
    };
    app.add_option_function<std::vector<std::string>>(
           std::string("--") + row.option,
           [take](const std::vector<std::string>& texts) { std::for_each(texts.begin(), texts.end(), take); },
           row.description)
        ->type_name(row.type)
        ->expected(1)
        ->take_all();
  }
  app.footer(
      "Reads parameters and their roles from the signature and the uses. Asks on a terminal for what it cannot know;\n"
      "elsewhere it names the option that is missing. Then: kgrpo-host problems check DIR.\n"
      "Examples:\n"
      "  kgrpo-host problems new saxpy.cu --size n=4194304 --value a=2.5\n"
      "  kgrpo-host problems new softmax.cu --out mine/softmax --size rows=512 --size cols=4096 \\\n"
      "    --shape x=rows,cols --shape out=rows,cols --grid rows --block 128 --torch softmax.py");
}

std::string AskAtTerminal(const std::string& question, const std::string& option) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return "";
  std::cerr << question << "\n  (" << option << "): " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer;
}

std::string NameFrom(const fs::path& out) {
  std::string name = out.filename().string();
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    if (!plain)
      throw Error(KGRPO_ERROR_INVALID, "--out " + out.string() + ": letters, digits, _, - and . alone name a problem");
  }
  return name;
}

void Write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  if (!stream.flush()) throw Error(KGRPO_ERROR_UNAVAILABLE, file.string() + ": cannot be written");
}

std::string ReadChecker(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream || text.empty())
    throw Error(KGRPO_ERROR_INVALID, "--checker " + file + ": the file is empty or cannot be read; `new` drafts one");
  return text;
}

std::string PythonOf(const Words& words) {
  if (!words.python.empty()) return words.python;
  const char* named = std::getenv("KGRPO_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

// trace_function.py, where the build and an installation put it.
std::string TraceProgram() {
  std::error_code code;
  const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
  return (folder / "../import_kernelbench/trace_function.py").lexically_normal().string();
}

void Run(const Words& words) {
  std::vector<std::string> folders;
  if (const auto given = words.options.find("include"); given != words.options.end()) {
    for (const auto& [folder, none] : given->second) folders.push_back(folder);
  }
  const CudaSource source(words.file, cuda_source::ReadWithOwnHeaders(words.file, folders));
  fs::path out = words.out.empty() ? fs::path(words.file).stem() : fs::path(words.out);
  if (!out.has_filename()) out = out.parent_path();
  if (fs::exists(out))
    throw Error(KGRPO_ERROR_INVALID, out.string() + " is there already: choose another folder by --out DIR");
  const Draft draft = MakeDraft(source, NameFrom(out), words.options, AskAtTerminal);
  OracleText oracle;
  const bool drafts_checker = words.checker == "new";
  std::string checker;
  if (!words.checker.empty()) checker = drafts_checker ? CheckerSkeleton(draft) : ReadChecker(words.checker);
  if (words.torch.empty() && checker.empty() && !words.reference_only) oracle = MakeOracle(source, draft);
  if (words.reference_only)
    oracle.yaml =
        "flags: [\"reference only: an error of the reference stays unseen, since no oracle is independent of it\"]\n";
  fs::create_directories(out);
  try {
    Write(out / "reference.cu", ReferenceText(source, draft));
    if (const std::string launcher = LauncherText(source, draft); !launcher.empty())
      Write(out / "launcher.cu", launcher);
    if (!oracle.text.empty()) Write(out / "oracle.cc", oracle.text);
    if (!checker.empty()) Write(out / "checker.cc", checker);
    Write(out / "problem.yaml", ProblemText(source, draft, oracle));
    const Problem problem = LoadProblem(out.string());
    if (!words.torch.empty()) {
      oracle.text = TraceOracle(problem, words.torch, PythonOf(words), TraceProgram());
      oracle.yaml = "oracle: torchscript\n";
      Write(out / "problem.yaml", ProblemText(source, draft, oracle));
      LoadProblem(out.string());
    }
  } catch (...) {
    fs::remove_all(out);
    throw;
  }

  std::cout << out.string() << ": drafted from " << draft.function->name << " of " << words.file << "\n";
  std::cout << "  entry    " << EntryText(source, draft) << "\n";
  for (const std::string& guess : draft.guesses) std::cout << "  guessed  " << guess << "\n";
  for (const std::string& guess : ValueGuesses(source, draft, oracle)) std::cout << "  guessed  " << guess << "\n";
  std::cout << "  change   a wrong guess in " << (out / "problem.yaml").string()
            << ", or draft again with options: kgrpo-host problems new --help\n";
  std::cout << (checker.empty() ? "  oracle   " : "  checker  ");
  if (!words.torch.empty()) {
    std::cout << oracle.text << " of " << words.torch << ", traced in float64\n";
  } else if (drafts_checker) {
    std::cout << "to be written in checker.cc: which outputs are right\n";
  } else if (!checker.empty()) {
    std::cout << "checker.cc, a copy of " << words.checker << "\n";
  } else if (words.reference_only) {
    std::cout << "reference only: an error of the reference stays unseen; --torch FILE.py gives a PyTorch function\n";
  } else if (oracle.translated) {
    std::cout << "translated from the kernel: read oracle.cc\n";
  } else {
    std::cout << "to be written in oracle.cc: only elementwise kernels are translated (" << oracle.why_not
              << ")\n           or draft again with --torch FILE.py (a PyTorch function), --checker new (if several\n  "
                 "         outputs are right) or --reference-only "
                 "(weaker)\n";
  }
  std::cout << "  next     kgrpo-host problems check " << out.string() << "\n";
}

}  // namespace
}  // namespace kgrpo::evaluator

int main(int count, char** words) {
  kgrpo::evaluator::Words read;
  CLI::App app("Drafts a problem folder from a kernel.", "kgrpo-host problems new");
  kgrpo::evaluator::AddOptions(app, &read);
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kgrpo::evaluator::kUsage;  // help is no error
  }
  try {
    kgrpo::evaluator::Run(read);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return kgrpo::evaluator::kBadInput;
  }
}
