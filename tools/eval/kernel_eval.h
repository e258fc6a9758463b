// `kgrpo-host eval kernel`: evaluates kernels for one problem. Called by main.cc.
#ifndef KGRPO_EVAL_KERNEL_EVAL_H
#define KGRPO_EVAL_KERNEL_EVAL_H

#include "cli/command.h"

namespace kgrpo::cli {

// Adds the command to `eval`.
void AddEvalKernel(CLI::App* eval, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
