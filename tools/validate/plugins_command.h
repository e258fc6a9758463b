// `kgrpo-host plugins list | describe NAME`: the plugins there are, and a plugin's options. Called by main.cc.
#ifndef KGRPO_VALIDATE_PLUGINS_COMMAND_H
#define KGRPO_VALIDATE_PLUGINS_COMMAND_H

#include "cli/command.h"

namespace kgrpo::cli {

void AddPluginCommands(CLI::App& plugins, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
