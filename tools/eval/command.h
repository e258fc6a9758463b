// The commands of kgrpo-eval beside `eval`. Each adds one with its options.
#ifndef KGRPO_EVAL_COMMAND_H
#define KGRPO_EVAL_COMMAND_H

#include "cli/command.h"

namespace kgrpo::cli {

void AddCoderCheckCommand(CLI::App& app, const Globals& globals, Action* action);
void AddProblemsCommand(CLI::App& app, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
