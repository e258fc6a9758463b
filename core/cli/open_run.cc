#include "cli/open_run.h"

#include "loop/run_config.h"
#include "store/inputs.h"

namespace kgrpo::cli {

std::unique_ptr<OpenedRun> OpenRun(Session& session, const PipelineConfig& config, const OpenOptions& options,
                                   Findings* findings) {
  const bool whole = options.roles.size() == kRoles.size();
  if (whole) CheckFile(config, findings);
  session.StartServices(config.seed, options.artifact_root);
  if (options.ranked != nullptr) options.ranked->Join(session, config);
  auto run = std::make_unique<OpenedRun>();
  const InputDigests inputs = findings->collects() ? InputDigests() : DigestsOf(config.inputs);
  run->parts = session.MakeParts(config, options.roles, /*identify=*/true, findings);
  run->parts.inputs = inputs;
  if (run->parts.evaluator == nullptr) {
    findings->notes.emplace_back("the problems were not opened: there is no evaluator");
    CheckParts(config, run->parts, /*problems=*/0, options.done, findings);
  } else if (options.ranked != nullptr) {
    run->problems = options.ranked->OpenProblems(config, run->parts, findings, options.done, options.opening);
  } else {
    run->problems = std::make_unique<RunProblems>(config, run->parts, *findings, options.done, options.opening);
  }
  return run;
}

}  // namespace kgrpo::cli
