// kgrpo-report: commands that read finished runs, each of which `kgrpo-host COMMAND` runs: compare, report, export.
#include "cli/command_line.h"
#include "report/command.h"

int main(int argc, char** argv) {
  using namespace kgrpo::cli;
  CommandLine line("Commands that read finished runs.");
  for (auto* add : {AddCompareCommand, AddReportCommand, AddExportCommand}) line.Add(add);
  return line.Run({argv + 1, argv + argc});
}
