#include "cli/ranked_run.h"

#include "base/cancel.h"
#include "base/default_plugins.h"
#include "base/launch.h"
#include "base/log.h"
#include "cli/open_run.h"
#include "loop/follower.h"

#include <kgrpo/sdk/error.h>

#include <chrono>
#include <exception>
#include <filesystem>

namespace kgrpo::cli {
namespace {

constexpr double kPatience = 300;  // seconds to wait for all ranks: containers may start late

std::string Versions(const PipelineParts& parts) {
  std::string all = "kgrpo " KGRPO_VERSION;
  for (const PluginIdentity& plugin : parts.identities)
    all += ", " + plugin.name + " " + plugin.version + " (" + plugin.sha256.substr(0, 8) + ")";
  return all;
}

}  // namespace

std::unique_ptr<RankedRun> RankedRun::Meet(Session& session) {
  const std::optional<Launch> launch = ReadLaunch();
  if (!launch) return nullptr;
  if (launch->rank > 0) {
    LogAsRank(launch->rank);
    HandleSignalsSilently();
  }
  return std::unique_ptr<RankedRun>(new RankedRun(session.loader().Load(KGRPO_DEFAULT_TRANSPORT), *launch));
}

RankedRun::RankedRun(const PluginLibrary& library, const Launch& launch)
    : services_(HostOptions()),
      transport_(library, services_.ForInstance("transport"), launch, kPatience),
      ranks_(transport_) {}

void RankedRun::Join(Session& session, const PipelineConfig& config) {
  if (config.controls.shuffle_prompts) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "controls.shuffle_prompts exchanges prompts among all trajectories, and each rank has only its own: "
                "start it with one process");
  }
  if (config.loop.max_staleness > 0) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "loop.max_staleness: 1 needs a run in one process: start one, or set loop.max_staleness to 0");
  }
  session.services().SetCollective(transport_.collective(), transport_.context());
}

std::unique_ptr<RunProblems> RankedRun::OpenProblems(const PipelineConfig& config, PipelineParts& parts,
                                                     Findings* findings, uint64_t done,
                                                     const RunProblems::Opening& opening) {
  ranks_.SetHangLimit(std::chrono::seconds(config.loop.hang_seconds));
  std::unique_ptr<RunProblems> problems;
  ranks_.Agree(Versions(parts), config.resolved_yaml, [&] {
    problems = std::make_unique<RunProblems>(config, parts, *findings, done, opening);
    return problems->Names();
  });
  parts.ranks = &ranks_;
  parts.cancelled = [this] { return CancelRequested() || ranks_.AnotherFailed(); };
  return problems;
}

void RankedRun::SetFolder(const std::string& folder) {
  ranks_.SetResumeAdvice("to continue it: " + ResumeCommand(folder));
}

// Returns the folder, inside the run's, for files that plugins keep for this rank, such as paid answers of its coder.
std::filesystem::path RankedRun::ArtifactRoot(const std::string& output_dir) const {
  return std::filesystem::path(output_dir) / "artifacts" / ("rank-" + std::to_string(ranks_.rank()));
}

int RankedRun::Follow(Session& session, const LoadRequest& request, const std::string& output_dir) {
  try {
    PipelineConfig config = session.Load(request);
    if (!output_dir.empty()) config.output_dir = output_dir;
    OpenOptions options;
    options.artifact_root = ArtifactRoot(config.output_dir);
    options.ranked = this;
    options.done = request.steps_done;
    Findings findings;
    const std::unique_ptr<OpenedRun> run = OpenRun(session, config, options, &findings);
    SetFolder(config.output_dir);
    return kgrpo::Follow(config, run->parts, *run->problems, ranks_);
  } catch (const std::exception& error) {
    ranks_.Fail(error.what());
  }
}

}  // namespace kgrpo::cli
