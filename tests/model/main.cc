// kgrpo-model: commands on a model's folder, for tests and measurements: tokenize, score, generate, and update from
// recorded samples.
#include "cli/command_line.h"
#include "model/command.h"

int main(int argc, char** argv) {
  using namespace kgrpo::cli;
  CommandLine line("Commands on a model's folder.");
  for (auto* add : {AddTokenizeCommand, AddScoreCommand, AddGenerateCommand, AddUpdateCommand}) {
    line.Add(add);
  }
  return line.Run({argv + 1, argv + argc});
}
