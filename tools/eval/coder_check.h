// `kgrpo-host coder-check FILE`: asks a pipeline's coder once, and shows request, answer, time and cost. Called by
// main.cc.
#ifndef KGRPO_EVAL_CODER_CHECK_H
#define KGRPO_EVAL_CODER_CHECK_H

#include "cli/command.h"

namespace kgrpo::cli {

void AddCoderCheckCommand(CLI::App& app, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
