// The commands of kgrpo-report. Each adds one with its options.
#ifndef KGRPO_REPORT_COMMAND_H
#define KGRPO_REPORT_COMMAND_H

#include "cli/command.h"

namespace kgrpo::cli {

void AddCompareCommand(CLI::App& app, const Globals& globals, Action* action);
void AddReportCommand(CLI::App& app, const Globals& globals, Action* action);
void AddExportCommand(CLI::App& app, const Globals& globals, Action* action);
void AddMergeCommand(CLI::App& app, const Globals& globals, Action* action);

}  // namespace kgrpo::cli
#endif
