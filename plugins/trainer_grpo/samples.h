// samples.h - the samples of an update, checked, each with the data that the loss needs. Made by grpo_trainer.cc.
#pragma once
#include <kgrpo/trainer.h>

#include <cstddef>
#include <span>
#include <vector>

#include "trainer_grpo/advantage.h"
#include "trainer_grpo/grpo_options.h"

namespace kgrpo::grpo {

struct TrainingSample {
  kgrpo_sequence sequence = {};               // the host's arrays, valid during update
  const float* behaviour_logprobs = nullptr;  // the host's; null where not recorded
  RoundOutcome outcome;
  bool truncated = false;
  bool masked = false;  // gives no gradient
  double advantage = 0;
  std::vector<double> old_logprobs;        // of the completion's tokens
  std::vector<double> reference_logprobs;  // empty where no KL is wanted
  std::vector<double> corrections;         // empty where none are wanted

  size_t completion_size() const { return sequence.completion_size; }
  size_t loss_tokens() const { return masked ? 0 : completion_size(); }
  size_t tokens() const { return sequence.prompt_size + sequence.completion_size; }
};

// Checks the host's samples: nothing empty, all numbers finite, log-probabilities present (where options need them) and
// not above 0. Throws KGRPO_ERROR_INVALID naming the first sample that is wrong. Advantages, old and reference
// log-probabilities and corrections are not set yet.
std::vector<TrainingSample> ReadSamples(const GrpoOptions& options, const kgrpo_sample* const* samples, size_t count);

// The factors of a sample's policy term that correct for the sampler: exp(old - behaviour) per token, or the product
// over the sequence, within the options' bounds.
std::vector<double> SamplerCorrections(const GrpoOptions& options, const TrainingSample& sample);

// True if off_policy_mask_threshold leaves out the sample's policy term. `logprobs`: its tokens' under the policy now.
bool IsOffPolicy(const GrpoOptions& options, const TrainingSample& sample, std::span<const double> logprobs);

}  // namespace kgrpo::grpo
