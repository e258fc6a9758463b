// Writes a run's models: checkpoints (the policy, the reference, the trainer's state) and final/. The folders
// themselves are store/checkpoints.h's. Used by loop/run.cc.
#ifndef KGRPO_LOOP_CHECKPOINT_H
#define KGRPO_LOOP_CHECKPOINT_H

#include "config/pipeline.h"
#include "loop/stage.h"
#include "plugin/instances.h"
#include "store/checkpoints.h"
#include "store/database.h"
#include "store/fault.h"
#include "store/run_folder.h"

#include <kgrpo/sdk/error.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace kgrpo {

// Writes the policy's current model to the empty folder `target`. With `sampling`, its generation_config.json makes
// other programs sample as the run does.
void SaveModel(Policy& policy, const std::filesystem::path& target, const SamplingConfig* sampling);
// The same, replacing what is at `target`; a reader never finds part of a model.
void WriteModel(Policy& policy, const std::filesystem::path& target, const SamplingConfig* sampling,
                const FaultPoints& faults = {});

// The policy that final/ got, and the scores that checkpoint.final compared.
struct FinalModel {
  uint64_t step = 0;
  uint64_t stage = 0;  // index
  bool is_last = true;
  bool by_heldout = false;            // scores are held-out rewards; else as checkpoint.keep_best ranks without them
  std::optional<double> score, last;  // rewards of this policy and of the last one, if known
};

class SavedModels {
 public:
  // All references outlive this.
  SavedModels(const PipelineConfig& config, PipelineParts& parts, const RunFolder& folder, const FaultPoints& faults);

  std::optional<CheckpointState> Last() const { return checkpoints_.Last(); }

  // Returns the checkpoint that a run resumes from: that of step `from` if given, else the last undamaged one; nothing
  // where there are no checkpoints. SetLaterAside sets those after it aside, once nothing can refuse the run any more.
  // Without `from`, *notes receives a sentence for each damaged one. Throws KGRPO_ERROR_INVALID where that of `from` is
  // missing or damaged (naming the undamaged ones), and where all are damaged.
  std::optional<CheckpointState> GoBackTo(std::optional<uint64_t> from, std::vector<std::string>* notes);
  void SetLaterAside();
  std::string Resume() const;  // the command that continues this run, on as many ranks
  // Adds to an error of reading a checkpoint's files the command that resumes from an older checkpoint, if there is
  // one.
  Error WithResumeAdvice(const Error& error, uint64_t step) const;
  std::filesystem::path PathOf(uint64_t step) const { return checkpoints_.PathOf(step); }

  // Loads the policy, and the reference if there was one, as they were after that step.
  void Load(uint64_t step);
  // Throws KGRPO_ERROR_INVALID where no reference was loaded: changed options of that trainer need one.
  void RequireReference(const std::string& trainer) const;
  // Ranks checkpoints only by the rewards of later steps: those up to this one had another reward.
  void RankAfter(uint64_t step) { rank_after_ = step; }

  // Writes a checkpoint after the step `done`, the last that `stage` did. Then removes checkpoints that the
  // configuration no longer keeps, by the rewards in `database`.
  void WriteCheckpoint(Stage& stage, uint64_t done, RunDatabase& database);
  // Writes the trained model into final/: that of the step `done`, or of the best checkpoint if checkpoint.final says
  // so.
  FinalModel WriteFinal(uint64_t done, RunDatabase& database);

 private:
  void LoadCopy(kgrpo_policy_copy copy, const std::filesystem::path& folder);
  void SaveReference(const std::filesystem::path& target);
  void ReferenceSaved(const std::filesystem::path& checkpoint);
  bool RanksByHeldout() const;
  // By step, what checkpoint.keep_best ranks checkpoints by: the held-out reward of their weights if each is measured,
  // else what the next step's problems earned more in it than on average. A step without samples gives none.
  std::map<uint64_t, double> Scores(uint64_t done, RunDatabase& database) const;

  const PipelineConfig& config_;
  Policy& policy_;
  Ranks* ranks_;
  const RunFolder& folder_;
  const FaultPoints& faults_;
  Checkpoints checkpoints_;
  std::vector<uint64_t> later_;  // checkpoints that SetLaterAside sets aside
  uint64_t rank_after_ = 0;
  // A folder with the reference of that version of the policy's; empty: none was saved.
  std::filesystem::path saved_reference_;
  uint64_t saved_version_ = 0;
};

}  // namespace kgrpo
#endif
