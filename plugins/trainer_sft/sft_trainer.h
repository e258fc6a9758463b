// sft_trainer.h - supervised fine-tuning over any kgrpo.policy/1: the warm start before GRPO. plugin.cc offers it as
// kgrpo.trainer/1.
#pragma once
#include <kgrpo/host.h>
#include <kgrpo/sdk/policy_client.h>
#include <kgrpo/trainer.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <kgrpo/sdk/collective.h>
#include "trainer_sft/pairs.h"
#include "trainer_sft/sft_options.h"

#include "trainer_shared/optimizer.h"

namespace kgrpo::sft {

// One thread. Functions mirror kgrpo_trainer_interface and throw where those return errors.
//
// The loss of an optimiser step is the mean, over all completion tokens of its pairs, of -log probability at
// temperature 1; prompt tokens give none.
class SftTrainer {
 public:
  // `host` outlives the trainer. `cuda` may be null: see AdamW.
  SftTrainer(const kgrpo_host* host, SftOptions options, trainer::CudaTensorMathFactory cuda);

  const SftOptions& options() const { return options_; }
  uint32_t Source() const { return options_.pairs.empty() ? KGRPO_TRAINER_DEMONSTRATIONS : KGRPO_TRAINER_OWN_DATA; }
  bool NeedsReference() const { return false; }

  void CheckPlan(const kgrpo_trainer_plan& plan) const;
  // Reads the pairs, if the options name a file.
  void Begin(const kgrpo_policy_interface* api, kgrpo_policy* policy, const kgrpo_trainer_plan& plan);
  // Takes one optimiser step on the next batch of the file or, without a file, the steps of one pass over the samples.
  void Update(const kgrpo_sample* const* samples, size_t count, const kgrpo_update_sink& sink);
  void SaveState(kgrpo_writer writer);
  void LoadState(kgrpo_reader reader);

 private:
  struct Stage {
    PolicyClient policy;
    kgrpo_trainer_plan plan;
    trainer::Optimizer optimizer;
    std::vector<Pair> pairs;
  };
  struct StepFigures;

  Stage& stage();
  std::vector<kgrpo_sequence> NextBatch();
  StepFigures TakeStep(std::span<const kgrpo_sequence> batch, const trainer::SchedulePosition& position);

  const kgrpo_host* host_;
  Collective ranks_;
  SftOptions options_;
  trainer::CudaTensorMathFactory cuda_;
  std::optional<Stage> stage_;
  uint64_t updates_ = 0;       // finished in this stage
  uint64_t tokens_ = 0;        // seen so far, prompts and completions
  std::vector<size_t> order_;  // of the pairs, in the pass numbered order_pass_
  uint64_t order_pass_ = 0;
};

}  // namespace kgrpo::sft
