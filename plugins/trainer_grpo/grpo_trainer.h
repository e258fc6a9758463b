// grpo_trainer.h - group-relative policy optimisation over any kgrpo.policy/1. plugin.cc offers it as kgrpo.trainer/1.
#ifndef KGRPO_TRAINER_GRPO_GRPO_TRAINER_H
#define KGRPO_TRAINER_GRPO_GRPO_TRAINER_H
#include <kgrpo/host.h>
#include <kgrpo/sdk/policy_client.h>
#include <kgrpo/trainer.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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

  // Sets advantages; removes samples without variance where the options say so.
  void AssignAdvantages(std::vector<TrainingSample>& samples, UpdateMetrics& metrics) const;
  // Sets old and reference log-probabilities and the sampler's corrections.
  void ScoreWithFixedPolicies(std::vector<TrainingSample>& samples, UpdateMetrics& metrics);
  // Calls use(sample, scores of its tokens) for each sample, under one copy of the parameters. Each rank computes its
  // share of the scores and is told all.
  template <typename Use>
  void ForEachScored(std::vector<TrainingSample>& samples, kgrpo_policy_copy copy, Use&& use);
  // Accumulates the gradient of the window's loss, of this rank's share mini-batch by mini-batch, and sums it over the
  // ranks; figures are those of all ranks. With `compare`, the policy is still the one that sampled, and its
  // log-probabilities are compared with the sampler's.
  WindowFigures AccumulateWindow(std::span<const TrainingSample> samples, std::span<const size_t> window, bool compare);
  // The part of that for a piece of a mini-batch: false when its loss is not finite, and then nothing is accumulated.
  // `final` as PolicyClient::Differentiate takes it.
  bool AccumulatePiece(std::span<const TrainingSample* const> piece, const WindowSizes& sizes, WindowFigures& figures,
                       bool compare, const kgrpo_gradient_sink* final);
  void WarnOfSamplerMismatch(const UpdateMetrics& metrics);

  const kgrpo_host* host_;
  Collective ranks_;
  GrpoOptions options_;
  trainer::CudaTensorMathFactory cuda_;
  std::optional<Stage> stage_;
  uint64_t updates_ = 0;  // finished ones of the stage
  uint64_t tokens_ = 0;   // seen so far, prompts and completions
  bool warned_of_mismatch_ = false;
};

}  // namespace kgrpo::grpo
#endif
