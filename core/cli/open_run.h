// Opens a run: makes its parts, opens its problems, and checks all of it in one order. `run` and `resume` stop at the
// first fault, `check` lists all of them, so `check` finds a fault exactly if `run` refuses.
#ifndef KGRPO_CLI_OPEN_RUN_H
#define KGRPO_CLI_OPEN_RUN_H

#include "cli/ranked_run.h"
#include "cli/session.h"
#include "config/findings.h"
#include "config/pipeline.h"
#include "loop/run_problems.h"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace kgrpo::cli {

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
