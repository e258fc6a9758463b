// Runs the several runs that one file describes (config/experiment.h), each in a process and a folder of its own. Used
// by `kgrpo-host run` and `check`.
#ifndef KGRPO_CLI_EXPERIMENT_H
#define KGRPO_CLI_EXPERIMENT_H

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "config/experiment.h"

namespace kgrpo::cli {

// One run with its configuration, output_dir included. An option that the variant changes has its place in the file
// and the variant's name in option_places: `ab.yaml:4:30: variant "log"`.
struct PlannedRun {
  ExperimentRun run;
  PipelineConfig config;
};

// Every run of the request's file, checked. Throws ConfigError with the mistakes of all runs, and KGRPO_ERROR_INVALID
// for a variant whose configuration is that of another one: it would be measured against itself.
std::vector<PlannedRun> PlanExperiment(Session& session, const LoadRequest& request,
                                       const std::vector<ExperimentRun>& runs);

// `variant "log"`, as messages name it.
std::string NameOfVariant(const ExperimentRun& run);

// Throws KGRPO_ERROR_INVALID, naming those that there are, unless `name` is empty or one of them.
void RequireVariant(const std::vector<ExperimentRun>& runs, const std::string& name);

// Why RunExperiment would neither begin nor continue the run, for a user; "" where it would.
std::string RefusalOf(const PlannedRun& planned);

struct ExperimentOptions {
  std::string variant;  // only this one; empty: all
  size_t jobs = 1;      // runs side by side; where there are GPUs, each may use one of them
  bool overwrite = false;
};

// Runs what is not finished: new runs are begun, those that were stopped go on. Makes the plugins of every variant
// first: throws PartError with their mistakes. Each run's configuration lies beside
// its folder, as FOLDER.yaml; experiment.json lists the runs. Goes on with the others where one fails. Returns the exit
// code of the first that failed.
int RunExperiment(const Globals& globals, const std::vector<PlannedRun>& runs, const ExperimentOptions& options);

}  // namespace kgrpo::cli
#endif
