#include "cli/open_run.h"

#include <kgrpo/sdk/error.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

#include "base/cancel.h"
#include "base/default_plugins.h"
#include "base/launch.h"
#include "base/log.h"
#include "loop/rollout.h"
#include "loop/run_config.h"
#include "loop/stage.h"
#include "loop/wire.h"
#include "store/inputs.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPatience = 300;  // seconds to wait for all ranks: containers may start late

std::string Versions(const PipelineParts& parts) {
  std::string all = "kgrpo " KGRPO_VERSION;
  for (const PluginIdentity& plugin : parts.identities)
    all += ", " + plugin.name + " " + plugin.version + " (" + plugin.sha256.substr(0, 8) + ")";
  return all;
}

// The loop of a follower rank: carries out the leader's orders (loop/ranks.h) until the run ends. Writes nothing.
class Follower {
 public:
  Follower(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, Ranks& ranks)
      : config_(config), parts_(parts), ranks_(ranks), rollout_(config, parts, problems.train, problems.pool) {
    if (problems.heldout) heldout_rollout_.emplace(config, parts, *problems.heldout, problems.pool);
  }

  int Run() {
    for (;;) {
      const Json order = ranks_.NextOrder();
      const std::string what = order.at("do");
      if (what == "end") {
        ranks_.Part();
        return order.at("code").get<int>();
      }
      try {
        Do(what, order);
      } catch (const Error&) {
        // The leader has this error too, and gives the next order.
      }
    }
  }

 private:
  void Do(const std::string& what, const Json& order) {
    if (what == "collect") {
      const RolloutRequest request = RequestFromJson(order.at("request"));
      const bool heldout = request.purpose == Purpose::kHeldout || request.purpose == Purpose::kGreedy;
      (heldout ? heldout_rollout_.value() : rollout_).CollectShare(request, ranks_);
    } else if (what == "train") {
      const OwnedSamples samples = SamplesFromJson(order.at("samples"));
      ranks_.InStep([&] { TrainerOf(order).Train(samples.samples); });
    } else if (what == "save") {
      std::ostream nowhere(nullptr);
      ranks_.InStep([&] { TrainerOf(order).SaveState(nowhere, /*keep_going=*/true); });
    } else if (what == "begin") {
      ranks_.InStep([&] {
        if (order.at("freeze").get<bool>()) parts_.policy->FreezeReference();
        BeginTrainer(config_, parts_, order.at("stage"));
      });
    } else if (what == "restore") {
      ranks_.InStep([&] {
        BeginTrainer(config_, parts_, order.at("stage"));
        RestoreTrainer(TrainerOf(order), order.at("state").get<std::string>());
      });
    } else if (what == "load") {
      ranks_.Together([&] {
        parts_.policy->Load(static_cast<kgrpo_policy_copy>(order.at("copy").get<int>()), order.at("folder"));
        return std::string();
      });
    } else {
      throw Error(KGRPO_ERROR_INTERNAL, "the leader ordered \"" + what + "\"");
    }
  }

  Trainer& TrainerOf(const Json& order) { return *parts_.trainers.at(order.at("stage").get<size_t>()); }

  const PipelineConfig& config_;
  PipelineParts& parts_;
  Ranks& ranks_;
  Rollout rollout_;
  std::optional<Rollout> heldout_rollout_;
};

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
    return Follower(config, run->parts, *run->problems, ranks_).Run();
  } catch (const std::exception& error) {
    ranks_.Fail(error.what());
  }
}

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
