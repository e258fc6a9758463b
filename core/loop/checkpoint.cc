#include "loop/checkpoint.h"

#include "store/files.h"

#include <system_error>

namespace kgrpo {

namespace fs = std::filesystem;

SavedModels::SavedModels(const CheckpointConfig& config, Policy& policy, const RunFolder& folder,
                         const FaultPoints& faults)
    : config_(config), policy_(policy), folder_(folder), faults_(faults), checkpoints_(folder.checkpoints(), faults) {}

void SavedModels::Load(uint64_t step) {
  const fs::path path = checkpoints_.PathOf(step);
  policy_.Load(KGRPO_POLICY_CURRENT, path / "policy");
  if (!fs::exists(path / "reference")) return;
  policy_.Load(KGRPO_POLICY_REFERENCE, path / "reference");
  reference_present_ = true;
  saved_reference_ = path / "reference";
}

void SavedModels::ReferenceFrozen() {
  reference_present_ = true;
  saved_reference_.clear();
}

void SavedModels::WriteCheckpoint(Stage& stage, uint64_t done, std::optional<double> reward_mean) {
  CheckpointState state;
  state.step = done;
  state.stage = stage.index();
  state.stage_steps = done + 1 - stage.first_step();
  state.reward_mean = reward_mean;
  checkpoints_.Write(state, [&](const fs::path& path) {
    fs::create_directory(path / "policy");
    policy_.Save(KGRPO_POLICY_CURRENT, path / "policy");
    Pass(faults_, "checkpoint: policy written");
    if (reference_present_) SaveReference(path / "reference");
    // A stage that is over needs its trainer no more, one that has not begun has nothing to keep.
    if (state.stage_steps > 0 && done != stage.last_step()) stage.Save(path);
  });
  if (reference_present_) saved_reference_ = checkpoints_.PathOf(done) / "reference";
  checkpoints_.Prune(config_.keep_last, config_.keep_best);
}

// The reference doesn't change within a stage: checkpoints share its files.
void SavedModels::SaveReference(const fs::path& target) {
  fs::create_directory(target);
  if (!saved_reference_.empty() && fs::exists(saved_reference_)) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(saved_reference_)) {
      fs::create_hard_link(entry.path(), target / entry.path().filename(), error);
      if (error) break;
    }
    if (!error) return;
    fs::remove_all(target);  // a file system without hard links: write it out
    fs::create_directory(target);
  }
  policy_.Save(KGRPO_POLICY_REFERENCE, target);
}

void SavedModels::WriteFinal() {
  const fs::path partial = folder_.final_model().string() + ".partial";
  fs::remove_all(partial);
  fs::create_directories(partial);
  policy_.Save(KGRPO_POLICY_CURRENT, partial);
  Pass(faults_, "final: filled");
  fs::remove_all(folder_.final_model());
  PublishDirectory(partial, folder_.final_model());
  Pass(faults_, "final: renamed");
}

}  // namespace kgrpo
