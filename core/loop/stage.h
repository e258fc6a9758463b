// One stage of a pipeline: a trainer, where its samples come from, and its part of a checkpoint. Used by loop/run.cc,
// which owns the order of steps and everything written to disk.
#ifndef KGRPO_LOOP_STAGE_H
#define KGRPO_LOOP_STAGE_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/metrics.h"
#include "loop/rollout.h"
#include "loop/round_faults.h"
#include "loop/samples.h"
#include "plugin/parts.h"
#include "store/database.h"
#include "store/records.h"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

class Stage {
 public:
  // `first_step`: of the whole run, from 1. `console`: shows problems and progress to the user; may be null. All
  // references outlive this.
  Stage(const PipelineConfig& config, PipelineParts& parts, Rollout& rollout, const ProblemSet& problems,
        RunDatabase& database, size_t index, uint64_t first_step, Console* console);

  uint64_t first_step() const { return first_step_; }
  uint64_t last_step() const { return first_step_ + config_.stages[index_].steps - 1; }
  size_t index() const { return index_; }
  bool needs_reference() const { return trainer_.needs_reference(); }
  // True if the stage may get further steps after that one: its own, or those by which `resume` extends the last stage.
  bool may_continue_after(uint64_t step) const { return step != last_step() || index_ + 1 == config_.stages.size(); }

  // Starts the stage: freezes the reference if the trainer compares with one, and collects demonstrations if it
  // imitates.
  void Begin();
  // Resumes in the middle of the stage. The policy's copies are loaded already.
  void Restore(const std::filesystem::path& checkpoint);
  // Writes the trainer's part of a checkpoint.
  void Save(const std::filesystem::path& checkpoint);

  // One step: collects what the trainer wants and lets it update the policy. Fills the record's trajectories, metrics
  // and optimiser steps. Calls `before_training` between rollout and update: work that it starts overlaps with the
  // update.
  void Step(uint64_t step, StepRecord& record, MetricMap& metrics,
            const std::function<void(const StepRecord&)>& before_training);

  // True from the start of an update until its step is recorded, or until the update fails with KGRPO_ERROR_NOT_FINITE,
  // which leaves the policy unchanged. Write no checkpoint while it is true.
  bool policy_in_doubt() const { return policy_in_doubt_; }
  // Ends steps that were begun and are not finished. What coders have answered is kept for the resumed run.
  void Abandon();
  // Call once the step that the policy has learned from is in the database.
  void StepRecorded();
  // Tells the user if all answers of the coder, the evaluator or the reward in that step failed, or were useless.
  // Throws KGRPO_ERROR_UNAVAILABLE where all of several steps in a row failed, and so for held-out episodes. Call it
  // after the step is recorded: a resumed run then continues after it with new requests.
  void CheckAnswers(const StepRecord& record);

 private:
  struct Begun {
    RolloutRequest request;
    std::shared_ptr<Rollout::Cohort> cohort;  // with loop.max_staleness
  };
  void Note(const std::string& text) const;
  void GetDemonstrations(bool begins);
  std::vector<TrajectoryRecord> CollectDemonstrations();
  Begun& Prepare(uint64_t step, uint32_t staleness);
  RolloutResult FinishBesideNext(uint64_t step, Begun& begun);
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
  uint64_t rollouts_before_ = 0;  // rollouts of the stages before this one
  RoundFaults faults_, heldout_faults_;
  std::optional<Demonstrations> demonstrations_;  // set where the trainer imitates
  std::deque<std::unique_ptr<Begun>> begun_;      // the step, then the one that is begun ahead
  std::vector<TrajectoryRecord> restored_;        // rounds that an earlier process began ahead of the next step
  bool policy_in_doubt_ = false;
};

// The plan of that stage for its trainer. Its `problems` is 0, not known, where unusable ones are left out.
kgrpo_trainer_plan PlanOf(const PipelineConfig& config, const PipelineParts& parts, size_t stage);
// Begins the trainer of that stage on this rank.
void BeginTrainer(const PipelineConfig& config, PipelineParts& parts, size_t stage);
// Reads a trainer's part of a checkpoint. Errors name the file.
void RestoreTrainer(Trainer& trainer, const std::filesystem::path& state);

}  // namespace kgrpo
#endif
