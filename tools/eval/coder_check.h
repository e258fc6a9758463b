// The command `coder-check`, of kgrpo-eval.
#ifndef KGRPO_EVAL_CODER_CHECK_H
#define KGRPO_EVAL_CODER_CHECK_H

#include "cli/command.h"

namespace kgrpo::cli {

void AddCoderCheckCommand(CLI::App& app, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
