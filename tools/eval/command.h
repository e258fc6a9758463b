// The commands of kgrpo-eval. Each function adds one with its options. Called by main.cc.
#ifndef KGRPO_EVAL_COMMAND_H
#define KGRPO_EVAL_COMMAND_H

#include "cli/command.h"

namespace kgrpo::cli {

void AddCoderCheckCommand(CLI::App& app, const Globals& globals, Action* action);
void AddProblemsCommand(CLI::App& app, const Globals& globals, Action* action);

// Commands of `eval`: evaluate kernels for one problem; play policies on held-out problems and compare them.
void AddEvalPolicy(CLI::App* eval, const Globals& globals, Action* action);
void AddEvalKernel(CLI::App* eval, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
