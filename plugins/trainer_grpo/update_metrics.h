// update_metrics.h - the figures of an update, under the names that TRL gives them. Filled by grpo_trainer.cc while it
// works, pushed once at the end.
#pragma once
#include <kgrpo/trainer.h>

#include <cstdint>
#include <span>
#include <vector>

#include "trainer_grpo/loss.h"
#include "trainer_grpo/samples.h"
#include "trainer_shared/metrics.h"
#include "trainer_shared/optimizer.h"
#include "trainer_shared/ranks.h"

namespace kgrpo::grpo {

// Figures of one optimiser step's forward passes.
struct WindowFigures {
  double loss = 0;
  LossStatistics statistics;
  trainer::Summary entropy;              // over tokens, nats
  trainer::Summary off_policy;           // over sequences: 1 where off_policy_mask_threshold masks it
  trainer::Summary sampling_difference;  // of a token's log-probabilities, absolute, trainer to sampler; if compared
};

// Returns the figures of all ranks, given this rank's own. Every rank calls it.
WindowFigures CombinedOver(const Collective& ranks, const WindowFigures& own);

// Declares the metrics that UpdateMetrics pushes.
void DeclareMetrics(const Host& host);

class UpdateMetrics {
 public:
  UpdateMetrics(const GrpoOptions& options, const kgrpo_update_sink& sink) : options_(options), sink_(sink) {}

  // Adds the rewards and lengths of all samples of the rollout. Pushes each sample's return and advantage at once.
  void AddSamples(std::span<const TrainingSample> samples, const Advantages& advantages);
  // Differences between the trainer's and the sampler's log-probabilities of tokens; once an update.
  void SetSamplingDifference(const trainer::Summary& difference) { sampling_difference_ = difference; }
  void AddSamplerCorrections(std::span<const double> corrections);
  // Pushes the optimiser step's row at once.
  void AddStep(const WindowFigures& window, const trainer::StepOutcome& outcome);
  // Pushes everything else.
  void PushAll(uint64_t tokens_so_far, uint64_t skipped_steps);

  const trainer::Summary& sampling_difference() const { return sampling_difference_; }

 private:
  void PushClipRatios();

  const GrpoOptions& options_;
  kgrpo_update_sink sink_;
  trainer::Summary reward_, length_, terminated_length_, truncated_, zero_variance_;
  uint64_t cut_rounds_ = 0;
  trainer::Summary sampling_difference_, sampler_correction_;
  trainer::Summary loss_, gradient_norm_;  // over the optimiser steps that were taken
  double learning_rate_ = 0;
  uint64_t steps_ = 0;
  LossStatistics statistics_;
  double entropy_sum_ = 0;
  double off_policy_ = 0;  // sequences that were masked
  uint64_t sequences_ = 0;
};

}  // namespace kgrpo::grpo
