// One stage of a pipeline: a trainer, where its samples come from, and its part of a checkpoint. Used by loop/run.cc,
// which owns the order of steps and everything written to disk.
#ifndef KGRPO_LOOP_STAGE_H
#define KGRPO_LOOP_STAGE_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/coder_faults.h"
#include "loop/demonstrations.h"
#include "loop/metrics.h"
#include "loop/parts.h"
#include "loop/rollout.h"
#include "store/database.h"
#include "store/records.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

class Stage {
 public:
  // `first_step`: of the whole run, from 1. `console`: where the user is told of what goes wrong and of how far it is;
  // may be null. All references outlive this.
  Stage(const PipelineConfig& config, PipelineParts& parts, Rollout& rollout, const ProblemSet& problems,
        RunDatabase& database, size_t index, uint64_t first_step, Console* console);

  uint64_t first_step() const { return first_step_; }
  uint64_t last_step() const { return first_step_ + config_.stages[index_].steps - 1; }
  size_t index() const { return index_; }

  // Starts the stage: freezes the reference if the trainer compares with one, and collects demonstrations if it
  // imitates. Returns whether the reference was frozen.
  bool Begin();
  // Goes on in the middle of the stage: the policy's copies are loaded already.
  void Restore(const std::filesystem::path& checkpoint);
  // The trainer's part of a checkpoint.
  void Save(const std::filesystem::path& checkpoint);

  // One step: collects what the trainer wants and lets it update the policy. Fills the record's trajectories, metrics
  // and optimiser steps. `before_training` runs once the rollout is in: what it starts overlaps with the update.
  void Step(uint64_t step, StepRecord& record, MetricMap& metrics,
            const std::function<void(const StepRecord&)>& before_training);

  // True from when an update starts until its step is recorded (or the update says that the policy is as good as it
  // was): no checkpoint may be made of the policy then.
  bool policy_in_doubt() const { return policy_in_doubt_; }
  // The step that the policy has learned from is in the database.
  void StepRecorded() { policy_in_doubt_ = false; }
  // Tells the user where the coder's answers of that step were of no use; throws KGRPO_ERROR_UNAVAILABLE where those of
  // several steps in a row were. For a step that is recorded: a run that is resumed goes on after it and asks anew.
  void CheckAnswers(const StepRecord& record);

 private:
  void Note(const std::string& text) const;
  void GetDemonstrations();
  Suggester MakeSuggester() const;
  void Train(std::vector<kgrpo_sample> samples, StepRecord& record, MetricMap& metrics);

  const PipelineConfig& config_;
  PipelineParts& parts_;
  Rollout& rollout_;
  const ProblemSet& problems_;
  RunDatabase& database_;
  size_t index_;
  uint64_t first_step_;
  Console* console_;
  Trainer& trainer_;
  kgrpo_trainer_source source_;
  CoderFaults coder_faults_;
  std::optional<Demonstrations> demonstrations_;  // where the trainer imitates
  bool policy_in_doubt_ = false;
};

// Begins the stage of that index, as this rank's part of it.
void BeginTrainer(const PipelineConfig& config, PipelineParts& parts, size_t stage);
// Reads a trainer's part of a checkpoint. Errors name the file.
void RestoreTrainer(Trainer& trainer, const std::filesystem::path& state);

}  // namespace kgrpo
#endif
