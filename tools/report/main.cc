// kgrpo-report: commands that read finished runs, each of which `kgrpo-host COMMAND` runs: compare, report,
// export, and merge for what a run with an adapter leaves.
#include "cli/command_line.h"
#include "report/command.h"

int main(int argc, char** argv) {
  using namespace kgrpo::cli;
  CommandLine line("Commands on finished runs.");
  for (auto* add : {AddCompareCommand, AddReportCommand, AddExportCommand, AddMergeCommand}) line.Add(add);
  return line.Run({argv + 1, argv + argc});
}
