// kgrpo_draft_problem KERNEL.cu [OPTIONS]: what `kgrpo-host problems new` runs. Options are those of its --help,
// checked for their form there. Exit codes are the host's: 0 fine, 2 the command line, 3 bad input.
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>

#include "evaluator_shared/draft/draft.h"
#include "evaluator_shared/draft/oracle_text.h"
#include "evaluator_shared/draft/problem_text.h"
#include "evaluator_shared/source_policy.h"

namespace kgrpo::evaluator {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2, kBadInput = 3;

// Of --out; a missing option's value is "".
struct Words {
  std::string file, out;
  DraftOptions options;
};

Words WordsFrom(int count, char** words) {
  const std::set<std::string> plain = {"function", "grid", "block", "shared"}, names = {"input", "output", "inout"};
  Words read;
  read.file = words[1];
  for (int i = 2; i + 1 < count; i += 2) {
    const std::string option = std::string(words[i]).substr(2), text = words[i + 1];
    if (option == "out") {
      read.out = text;
    } else if (plain.contains(option)) {
      read.options[option][""] = text;
    } else if (names.contains(option)) {
      read.options[option][text] = "";
    } else {
      const size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0)
        throw Error(KGRPO_ERROR_INVALID, "--" + option + " " + text + ": expected NAME=VALUE");
      read.options[option][text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return read;
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

void Run(const Words& words) {
  std::ifstream stream(words.file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream) throw Error(KGRPO_ERROR_NOT_FOUND, "cannot read the kernel " + words.file);
  fs::path out = words.out.empty() ? fs::path(words.file).stem() : fs::path(words.out);
  if (!out.has_filename()) out = out.parent_path();
  if (fs::exists(out))
    throw Error(KGRPO_ERROR_INVALID, out.string() + " is there already: choose another folder by --out DIR");
  if (const std::string refused = CheckIncludes(text, {}); !refused.empty())
    throw Error(KGRPO_ERROR_INVALID, words.file + ": " + refused);

  const CudaSource source(words.file, text);
  const Draft draft = MakeDraft(source, NameFrom(out), words.options, AskAtTerminal);
  const OracleText oracle = MakeOracle(source, draft);
  fs::create_directories(out);
  try {
    Write(out / "reference.cu", ReferenceText(source, draft));
    Write(out / "oracle.cc", oracle.text);
    Write(out / "problem.yaml", ProblemText(source, draft, oracle));
    LoadProblem(out.string());
  } catch (...) {
    fs::remove_all(out);
    throw;
  }

  std::cout << out.string() << ": drafted from " << draft.function->name << " of " << words.file << "\n";
  std::cout << "  entry    " << EntryText(source, draft, fs::path(words.file).filename().string()) << "\n";
  for (const std::string& guess : draft.guesses) std::cout << "  guessed  " << guess << "\n";
  for (const std::string& guess : ValueGuesses(draft, oracle)) std::cout << "  guessed  " << guess << "\n";
  std::cout << "  change   a wrong guess in " << (out / "problem.yaml").string()
            << ", or draft again with options: kgrpo-host problems new --help\n";
  if (oracle.translated) {
    std::cout << "  oracle   translated from the kernel: read oracle.cc\n";
  } else {
    std::cout << "  oracle   to be written in oracle.cc: only elementwise kernels are translated (" << oracle.why_not
              << ")\n";
  }
  std::cout << "  next     kgrpo-host problems check " << out.string() << "\n";
}

}  // namespace
}  // namespace kgrpo::evaluator

int main(int count, char** words) {
  if (count < 2 || count % 2 != 0) {
    std::cerr << "usage: kgrpo-host problems new KERNEL.cu [OPTIONS]; see kgrpo-host problems new --help\n";
    return kgrpo::evaluator::kUsage;
  }
  try {
    kgrpo::evaluator::Run(kgrpo::evaluator::WordsFrom(count, words));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return kgrpo::evaluator::kBadInput;
  }
}
