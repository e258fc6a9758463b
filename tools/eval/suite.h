// `kgrpo-host eval suite DIR --kernels FOLDER`: evaluates a kernel for each problem of a folder, and counts results as
// papers do (fast_p). Called by main.cc.
#ifndef KGRPO_EVAL_SUITE_H
#define KGRPO_EVAL_SUITE_H

#include <string>
#include <vector>

#include "cli/command.h"

namespace kgrpo::cli {

struct SuiteOptions {
  std::string suite;      // a folder of problem folders, a problem's folder, or a pattern
  std::string kernels;    // a folder of NAME.cu, named after the problems
  std::string evaluator;  // a plugin
  std::vector<std::string> settings;
  std::vector<std::string> include = {};  // folders of the kernels' own headers, besides their own
  uint64_t jobs = 0;                      // kernels at once; 0: as many as cores
  bool thorough = false;
  bool kernelbench = false;   // judge a second time by KernelBench's rules
  std::string pytorch_times;  // a file of KernelBench's with the baselines of its speedups; "": the references
  bool json = false, markdown = false;
};

// The verdict of a problem without a kernel.
inline constexpr const char* kNoKernel = "no kernel";

// KERNELS/results.jsonl.
std::string ResultsFile(const SuiteOptions& options);

// Adds the command to `eval`.
void AddEvalSuite(CLI::App* eval, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
