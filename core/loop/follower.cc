#include "loop/follower.h"

#include "loop/rollout.h"
#include "loop/stage.h"
#include "loop/wire.h"

#include <kgrpo/sdk/error.h>

#include <optional>
#include <ostream>
#include <string>

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

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

int Follow(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, Ranks& ranks) {
  return Follower(config, parts, problems, ranks).Run();
}

}  // namespace kgrpo
