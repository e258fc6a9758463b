// `kgrpo-host eval policy`: plays policies on held-out problems and compares them. Called by main.cc.
#ifndef KGRPO_EVAL_EVAL_POLICY_H
#define KGRPO_EVAL_EVAL_POLICY_H

#include "cli/command.h"

namespace kgrpo::cli {

// Adds the command to `eval`.
void AddEvalPolicy(CLI::App* eval, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
