// `kgrpo-host eval --kernel`: evaluates kernels for one problem. Called by main.cc.
#ifndef KGRPO_EVAL_KERNEL_EVAL_H
#define KGRPO_EVAL_KERNEL_EVAL_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace kgrpo::cli {

struct EvalOptions {
  std::string file;       // a pipeline, whose evaluator is used; or ""
  std::string kernel;     // of EvaluateKernel
  std::string problem;    // a folder or a name
  std::string evaluator;  // a plugin; "": the pipeline's, or the default
  std::string report;     // an HTML file to write; of EvaluateKernel
  std::vector<std::string> settings, include;
  std::optional<uint64_t> seed;  // of the secret inputs
  uint64_t jobs = 0;             // kernels at once; 0: as many as cores
  bool quick = false, show_hidden = false, profile = false, dispute_bound = false, json = false;
};

// The files that --kernel names: a folder stands for its .cu files, in order of their names. Throws
// KGRPO_ERROR_INVALID for a folder without one.
std::vector<std::string> KernelFiles(const std::vector<std::string>& words);

// Evaluates one kernel and prints the whole evidence. Returns the exit code.
int EvaluateKernel(const Globals& globals, const EvalOptions& options);

// Evaluates the files by one evaluator, several at once, and prints a line for each in their order.
int EvaluateKernels(const Globals& globals, const EvalOptions& options, const std::vector<std::string>& files);

}  // namespace kgrpo::cli
#endif
