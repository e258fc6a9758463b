// grpo_options.h - the options of trainer_grpo: their JSON Schema and their parsed form. Used by plugin.cc and
// grpo_trainer.cc; docs/grpo.md explains them.
#pragma once
#include <kgrpo/trainer.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "trainer_grpo/advantage.h"
#include "trainer_grpo/loss.h"
#include "trainer_shared/optimizer.h"

namespace kgrpo::grpo {

// The policy that importance ratios are taken against.
enum class OldLogprobs { kBehaviour, kRecomputed };

// Corrections for a sampler whose log-probabilities differ from the trainer's: see docs/grpo.md.
enum class SamplerCorrection { kNone, kTokenTruncate, kTokenMask, kSequenceTruncate, kSequenceMask };

struct GrpoOptions {
  AdvantageOptions advantage;
  std::string own_advantage;                   // a formula (custom_advantage.h); empty: advantage's
  std::vector<std::string> advantage_program;  // a command; empty: none
  LossOptions loss;
  uint32_t max_completion_length = 0;  // what dr_grpo divides by; 0: the rollout's max_new_tokens
  OldLogprobs old_logprobs = OldLogprobs::kBehaviour;
  SamplerCorrection sampler_correction = SamplerCorrection::kNone;
  double sampler_correction_min = 0;
  double sampler_correction_max = 3;
  double off_policy_mask_threshold = std::numeric_limits<double>::infinity();
  bool mask_truncated_completions = false;
  bool drop_zero_variance_groups = false;
  bool sync_ref_model = false;
  uint32_t ref_model_sync_steps = 512;
  uint32_t ppo_epochs = 2;
  uint32_t mini_batch_size = 4;
  uint32_t gradient_accumulation_steps = 2;
  bool shuffle = false;
  uint32_t max_tokens_per_forward = 16384;
  trainer::OptimizerOptions optimizer;

  bool needs_reference() const { return loss.beta != 0; }
};

// The JSON Schema of the options. Static.
std::string_view GrpoOptionsSchema();

// `json` satisfies the schema, defaults filled in. Throws KGRPO_ERROR_INVALID for what a schema cannot say, all of it
// at once.
GrpoOptions ReadGrpoOptions(std::string_view json);

// Throws KGRPO_ERROR_INVALID if nothing could be learned by that plan, or not with these options.
void RefusePlan(const GrpoOptions& options, const kgrpo_trainer_plan& plan);
// Describes options that have no effect by that plan, or hardly the one that was meant.
std::vector<std::string> PlanWarnings(const GrpoOptions& options, const kgrpo_trainer_plan& plan);

}  // namespace kgrpo::grpo
