// Runs the several runs that one file describes (config/experiment.h), each in a process and a folder of its own. Used
// by `kgrpo-host run` and `check`.
#ifndef KGRPO_CLI_EXPERIMENT_H
#define KGRPO_CLI_EXPERIMENT_H

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "config/experiment.h"

namespace kgrpo::cli {

// One run with its configuration, output_dir included. For an option that the variant changes, option_places holds its
// place in the file and the variant's name: `ab.yaml:4:30: variant "log"`.
struct PlannedRun {
  ExperimentRun run;
  PipelineConfig config;
};

// Loads and checks every run of the request's file. Throws ConfigError with the mistakes of all runs. A variant with
// the same configuration as another one is a mistake too: it would be compared with itself.
std::vector<PlannedRun> PlanExperiment(Session& session, const LoadRequest& request,
                                       const std::vector<ExperimentRun>& runs);

// `variant "log"`, as messages name it.
std::string NameOfVariant(const ExperimentRun& run);

// Throws KGRPO_ERROR_INVALID, with the names of all variants, unless `name` (--variant) is empty or one of them.
// `runs`: those that `file` describes; absent if it describes one.
void RequireVariant(const std::optional<std::vector<ExperimentRun>>& runs, const std::string& name,
                    const std::string& file);

// Returns a message for the user if RunExperiment would neither begin nor continue the run; else "".
std::string RefusalOf(const PlannedRun& planned);

struct ExperimentOptions {
  std::string variant;  // only this one; empty: all
  size_t jobs = 0;  // runs at the same time, 0 as 1; with more than one, each gets one of the GPUs, if there are any
  bool overwrite = false;
};

// Begins new runs and continues stopped ones. If they have several variants, first makes the plugins of each, and
// throws PartError with their mistakes. Writes each run's configuration beside its folder, as FOLDER.yaml, and a list
// of the runs, experiment.json. A failed run does not stop the others. Returns the exit code of the first that failed,
// or 130 after a stop by the user.
int RunExperiment(const Globals& globals, const std::vector<PlannedRun>& runs, const ExperimentOptions& options);

}  // namespace kgrpo::cli
#endif
