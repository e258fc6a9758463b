// kgrpo-eval, which `kgrpo-host eval` runs: evaluates kernels for one problem (eval kernel), or policies on held-out
// problems (eval policy); and the commands coder-check and problems.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "eval/command.h"

namespace kgrpo::cli {
namespace {

void AddEvalCommand(CLI::App& app, const Globals& globals, Action* action) {
  CLI::App* command = app.add_subcommand("eval", "Evaluate kernels, or policies on held-out problems");
  command->require_subcommand(1);
  for (auto* add : {AddEvalKernel, AddEvalPolicy}) add(command, globals, action);
  // Listed by --help only: kgrpo-host starts the script that does its work.
  command->add_subcommand("suite", "Evaluate a kernel for each problem of a folder, and count fast_p")->callback([] {
    throw CLI::RequiredError("kgrpo-host, which starts the script of eval suite,");
  });
  command->footer(
      "Examples:\n"
      "  kgrpo-host eval kernel mine.cu --problem softmax_long\n"
      "  kgrpo-host eval policy configs/quickstart.yaml --policy runs/quickstart/final\n"
      "  kgrpo-host eval suite problems/ --kernels mine/");
}

// Rewrites the spelling of before, in which flags chose what to evaluate: `eval [FILE] --kernel F.cu... --problem P`
// and `eval FILE --policy P`. Goes with the next release.
std::vector<std::string> WithSubcommand(std::vector<std::string> words) {
  const auto eval = std::ranges::find(words, "eval");
  const auto has = [&](std::initializer_list<const char*> flags) {
    return std::any_of(eval, words.end(), [&](const std::string& word) {
      return std::ranges::any_of(flags,
                                 [&](const std::string& flag) { return word == flag || word.starts_with(flag + "="); });
    });
  };
  if (eval == words.end() || has({"-h", "--help"})) return words;
  const bool kernel = has({"--kernel"}), policy = has({"--policy", "--checkpoints"});
  const bool named = eval + 1 != words.end() && (eval[1] == "kernel" || eval[1] == "policy" || eval[1] == "suite");
  if (named || !(kernel || policy)) return words;
  const std::string command = kernel ? "kernel" : "policy";
  std::fprintf(stderr, "note: this spelling goes with the next release: write `eval %s`; see eval %s --help\n",
               command.c_str(), command.c_str());
  std::vector<std::string> rewritten(words.begin(), eval + 1), file;
  rewritten.push_back(command);
  bool of_kernel = false, of_flag = false;  // the word is a value of --kernel, or of another flag
  for (auto word = eval + 1; word != words.end(); ++word) {
    if (*word == "--kernel") {
      of_kernel = true;
    } else if (word->starts_with("--kernel=")) {
      rewritten.push_back(word->substr(word->find('=') + 1));
    } else if (word->starts_with("-")) {
      constexpr const char* kWithoutValue[] = {
          "--quick",         "--thorough", "--show-hidden", "--profile", "--json",
          "--dispute-bound", "-q",         "--quiet",       "-v",        "--verbose"};
      of_kernel = false;
      of_flag =
          word->find('=') == std::string::npos && std::ranges::find(kWithoutValue, *word) == std::end(kWithoutValue);
      rewritten.push_back(*word);
    } else {
      if (kernel && !of_kernel && !of_flag) rewritten.emplace_back("--pipeline");
      rewritten.push_back(*word);
      of_flag = false;
    }
  }
  return rewritten;
}

}  // namespace
}  // namespace kgrpo::cli

int main(int argc, char** argv) {
  using namespace kgrpo::cli;
  CommandLine line("Evaluates kernels, policies and problems, and asks coders.");
  for (auto* add : {AddEvalCommand, AddCoderCheckCommand, AddProblemsCommand}) line.Add(add);
  return line.Run(WithSubcommand({argv + 1, argv + argc}));
}
