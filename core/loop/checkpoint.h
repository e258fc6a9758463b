// Writes a run's models: checkpoints (the policy, the reference, the trainer's state) and final/. The folders
// themselves are store/checkpoints.h's. Used by loop/run.cc.
#ifndef KGRPO_LOOP_CHECKPOINT_H
#define KGRPO_LOOP_CHECKPOINT_H

#include "config/pipeline.h"
#include "loop/stage.h"
#include "plugin/instances.h"
#include "store/checkpoints.h"
#include "store/fault.h"
#include "store/run_folder.h"

#include <kgrpo/sdk/error.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace kgrpo {

// Writes the policy's current model to `target`, in place of what is there: whole or not at all.
void WriteModel(Policy& policy, const std::filesystem::path& target, const FaultPoints& faults = {});

class SavedModels {
 public:
  // All references outlive this.
  SavedModels(const CheckpointConfig& config, PipelineParts& parts, const RunFolder& folder, const FaultPoints& faults);

  std::optional<CheckpointState> Last() const { return checkpoints_.Last(); }

  // The checkpoint that a run resumes from: that of step `from` if given, else the last one whose files are whole.
  // Later checkpoints are set aside, and `note` is told of each that is damaged. Nothing where there is none. Throws
  // KGRPO_ERROR_INVALID, naming those that are whole, where `from` is not a whole one.
  std::optional<CheckpointState> GoBackTo(std::optional<uint64_t> from,
                                          const std::function<void(const std::string&)>& note);
  // Adds to an error of reading a checkpoint's files how to go on from an older one, if there is one.
  Error WithWayOn(const Error& error, uint64_t step) const;
  std::filesystem::path PathOf(uint64_t step) const { return checkpoints_.PathOf(step); }

  // Makes the policy, and the reference if there was one, what they were after that step.
  void Load(uint64_t step);
  // The policy froze another reference than the last checkpoint's.
  void ReferenceFrozen();

  // A checkpoint after the step `done`, the last that `stage` did; then those that are no longer kept are removed.
  // `reward_mean`: of the step's rollouts, if it had any.
  void WriteCheckpoint(Stage& stage, uint64_t done, std::optional<double> reward_mean);
  // The trained model, into final/.
  void WriteFinal();

 private:
  void LoadCopy(kgrpo_policy_copy copy, const std::filesystem::path& folder);
  void SaveReference(const std::filesystem::path& target);

  const CheckpointConfig& config_;
  Policy& policy_;
  Ranks* ranks_;
  const RunFolder& folder_;
  const FaultPoints& faults_;
  Checkpoints checkpoints_;
  bool reference_present_ = false;
  std::filesystem::path saved_reference_;  // a folder that holds the present reference; empty: none does
};

}  // namespace kgrpo
#endif
