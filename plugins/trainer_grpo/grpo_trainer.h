// grpo_trainer.h - group-relative policy optimisation over any kgrpo.policy/1. plugin.cc offers it as kgrpo.trainer/1.
#pragma once
#include <kgrpo/host.h>
#include <kgrpo/sdk/policy_client.h>
#include <kgrpo/trainer.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer_grpo/custom_advantage.h"
#include "trainer_grpo/grpo_options.h"
#include "trainer_grpo/samples.h"
#include "trainer_grpo/update_metrics.h"
#include "trainer_shared/optimizer.h"

namespace kgrpo::grpo {

// One thread. Functions mirror kgrpo_trainer_interface and throw where those return errors.
class GrpoTrainer {
 public:
  // `host` outlives the trainer. `cuda` may be null: see AdamW.
  GrpoTrainer(const kgrpo_host* host, GrpoOptions options, trainer::CudaTensorMathFactory cuda);

  const GrpoOptions& options() const { return options_; }
  uint32_t Source() const { return KGRPO_TRAINER_ROLLOUTS; }
  bool NeedsReference() const { return options_.needs_reference(); }

  void CheckPlan(const kgrpo_trainer_plan& plan) const;
  void Begin(const kgrpo_policy_interface* api, kgrpo_policy* policy, const kgrpo_trainer_plan& plan);
  void Update(const kgrpo_sample* const* samples, size_t count, const kgrpo_update_sink& sink);
  void SaveState(kgrpo_writer writer);
  void LoadState(kgrpo_reader reader);

 private:
  // Everything that exists from Begin on.
  struct Stage {
    PolicyClient policy;
    kgrpo_trainer_plan plan;
    trainer::Optimizer optimizer;
  };

  Stage& stage();

  // Sets advantages; removes samples whose return is cut, and those without variance if the options say so.
  void AssignAdvantages(std::vector<TrainingSample>& samples, UpdateMetrics& metrics) const;
  // Sets old and reference log-probabilities and the sampler's corrections.
  void ScoreWithFixedPolicies(std::vector<TrainingSample>& samples, UpdateMetrics& metrics);
  // Calls use(sample, log-probabilities of its tokens) for each sample that is not masked, under one copy of the
  // parameters. Each rank computes its share of the scores and receives all of them.
  template <typename Use>
  void ForEachScored(std::vector<TrainingSample>& samples, kgrpo_policy_copy copy, Use&& use);
  // Accumulates the gradient of the window's loss, mini-batch by mini-batch over this rank's share, and sums it over
  // the ranks. Returns the figures of all ranks. With `compare`, the policy must still be the one that sampled; its
  // log-probabilities are compared with the sampler's.
  WindowFigures AccumulateWindow(std::span<const TrainingSample> samples, std::span<const size_t> window, bool compare);
  // Does this for one piece of a mini-batch. Returns false, and accumulates nothing, if the loss is not finite.
  // `final`: see PolicyClient::Differentiate.
  bool AccumulatePiece(std::span<const TrainingSample* const> piece, const WindowSizes& sizes, WindowFigures& figures,
                       bool compare, const kgrpo_gradient_sink* final);
  void WarnOfSamplerMismatch(const UpdateMetrics& metrics);

  const kgrpo_host* host_;
  Collective ranks_;
  GrpoOptions options_;
  CustomAdvantage custom_advantage_;
  trainer::CudaTensorMathFactory cuda_;
  std::optional<Stage> stage_;
  uint64_t updates_ = 0;  // finished in this stage
  uint64_t tokens_ = 0;   // seen so far, prompts and completions
  bool warned_of_mismatch_ = false;
};

}  // namespace kgrpo::grpo
