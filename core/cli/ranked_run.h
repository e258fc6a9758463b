// `run` and `resume` with several ranks, started by torchrun, srun or mpirun: the ranks meet, agree, and all but
// the first follow.
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
  // Meets the other ranks; null where this process was started alone.
  static std::unique_ptr<RankedRun> Meet(Session& session);

  Ranks& ranks() { return ranks_; }
  bool leads() const { return ranks_.leads(); }

  // On every rank: has the session's instances find each other, and refuses what takes one process.
  void Join(Session& session, const PipelineConfig& config);
  // On every rank, once its parts are made: the problems of a run that all ranks are about to do.
  std::unique_ptr<RunProblems> OpenProblems(const PipelineConfig& config, PipelineParts& parts,
                                            const RunProblems::Opening& opening);

  // On a follower: the whole run of that pipeline, in `output_dir` where that is not the pipeline's. Returns the
  // process's exit code.
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
