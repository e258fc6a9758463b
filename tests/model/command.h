// The commands of kgrpo-model. Each adds one with its options.
#ifndef KGRPO_MODEL_COMMAND_H
#define KGRPO_MODEL_COMMAND_H

#include "cli/command.h"

namespace kgrpo::cli {

void AddTokenizeCommand(CLI::App& app, const Globals& globals, Action* action);
void AddScoreCommand(CLI::App& app, const Globals& globals, Action* action);
void AddGenerateCommand(CLI::App& app, const Globals& globals, Action* action);
void AddUpdateCommand(CLI::App& app, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
