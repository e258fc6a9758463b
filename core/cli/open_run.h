// Opens a run: makes its parts, opens its problems, and checks all of it in one order. `run` and `resume` stop at the
// first fault, `check` lists all of them, so `check` finds a fault exactly if `run` refuses. With several ranks,
// started by torchrun, srun or mpirun, the ranks connect and agree on the run, and all but the first follow.
#ifndef KGRPO_CLI_OPEN_RUN_H
#define KGRPO_CLI_OPEN_RUN_H

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/services.h"
#include "cli/session.h"
#include "config/findings.h"
#include "config/load.h"
#include "config/pipeline.h"
#include "loop/ranks.h"
#include "loop/run_problems.h"
#include "plugin/transport.h"

namespace kgrpo::cli {

// The connection to the other ranks.
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

// The problems refer to the parts.
struct OpenedRun {
  PipelineParts parts;
  std::unique_ptr<RunProblems> problems;  // null if the evaluator cannot be made
};

struct OpenOptions {
  std::set<Role> roles = {kRoles.begin(), kRoles.end()};
  std::filesystem::path artifact_root;  // as in HostOptions; empty: the parts keep no files
  RankedRun* ranked = nullptr;          // the connection to the other ranks; null: there are none
  uint64_t done = 0;                    // steps of a resumed run
  RunProblems::Opening opening;         // shows progress; may be empty
};

// Starts the session's services. Throws the first fault, unless `findings` collect.
std::unique_ptr<OpenedRun> OpenRun(Session& session, const PipelineConfig& config, const OpenOptions& options,
                                   Findings* findings);

}  // namespace kgrpo::cli
#endif
