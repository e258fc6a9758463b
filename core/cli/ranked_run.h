// `run` and `resume` with several ranks, started by torchrun, srun or mpirun: the ranks connect and agree on the run,
// and all but the first follow.
#ifndef KGRPO_CLI_RANKED_RUN_H
#define KGRPO_CLI_RANKED_RUN_H

#include "base/services.h"
#include "cli/session.h"
#include "config/load.h"
#include "loop/ranks.h"
#include "loop/run_problems.h"
#include "plugin/transport.h"

#include <filesystem>
#include <memory>
#include <string>

namespace kgrpo::cli {

class RankedRun {
 public:
  // Connects to the other ranks; returns null where this process was started alone.
  static std::unique_ptr<RankedRun> Meet(Session& session);

  Ranks& ranks() { return ranks_; }
  bool leads() const { return ranks_.leads(); }

  // Call on every rank. Connects the session's plugin instances across ranks. Throws for a configuration that needs a
  // single process.
  void Join(Session& session, const PipelineConfig& config);
  // Call on every rank, once its parts are made. Opens the run's problems, and checks that all ranks are about to do
  // the same run.
  std::unique_ptr<RunProblems> OpenProblems(const PipelineConfig& config, PipelineParts& parts, Findings* findings,
                                            uint64_t done, const RunProblems::Opening& opening);

  // Call on the leader once the run's folder exists: a message about a lost rank then says how to continue.
  void SetFolder(const std::string& folder);

  // Call on a follower. Follows the whole run of that pipeline; `output_dir` replaces the pipeline's if it is not
  // empty. Returns the process's exit code.
  int Follow(Session& session, const LoadRequest& request, const std::string& output_dir = "");

 private:
  RankedRun(const PluginLibrary& library, const Launch& launch);
  std::filesystem::path ArtifactRoot(const std::string& output_dir) const;

  HostServices services_;  // the transport's
  Transport transport_;
  Ranks ranks_;
};

}  // namespace kgrpo::cli
#endif
