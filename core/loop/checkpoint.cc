#include "loop/checkpoint.h"

#include "base/files.h"
#include "base/launch.h"
#include "loop/ranks.h"
#include "loop/wire.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

namespace kgrpo {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

// "10, 20 or 30"
std::string StepsText(const std::vector<uint64_t>& steps) {
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == steps.size() ? " or " : ", ") + std::to_string(steps[i]);
  }
  return steps.empty() ? "no step" : text;
}

}  // namespace

SavedModels::SavedModels(const PipelineConfig& config, PipelineParts& parts, const RunFolder& folder,
                         const FaultPoints& faults)
    : config_(config),
      policy_(*parts.policy),
      ranks_(parts.ranks),
      folder_(folder),
      faults_(faults),
      checkpoints_(folder.checkpoints(), faults) {}

std::optional<CheckpointState> SavedModels::GoBackTo(std::optional<uint64_t> from, std::vector<std::string>* notes) {
  const std::vector<uint64_t> steps = checkpoints_.Steps();
  size_t kept = steps.size();  // the first so many stay
  if (from) {
    const auto found = std::ranges::find(steps, *from);
    const std::string damage = found != steps.end() ? checkpoints_.Damage(*from) : "it has no checkpoint";
    if (!damage.empty()) {
      const std::vector<uint64_t> whole = checkpoints_.WholeSteps();
      throw Error(KGRPO_ERROR_INVALID, "cannot go on after step " + std::to_string(*from) + ": " + damage + "; " +
                                           (steps.empty()   ? "the run has no checkpoints"
                                            : whole.empty() ? "no other checkpoint is undamaged"
                                                            : "undamaged checkpoints: step " + StepsText(whole) +
                                                                  "; to go on after the last: " + Resume() +
                                                                  " --from-step " + std::to_string(whole.back())));
    }
    kept = static_cast<size_t>(found - steps.begin()) + 1;
  } else {
    std::string last_damage;
    for (; kept > 0; --kept) {
      const std::string damage = checkpoints_.Damage(steps[kept - 1]);
      if (damage.empty()) break;
      if (kept == steps.size()) last_damage = damage;
      notes->push_back("checkpoint step-" + std::to_string(steps[kept - 1]) + " is damaged (" + damage +
                       "): it is set aside, and the one before is taken");
    }
    if (kept == 0 && !steps.empty()) {
      throw Error(KGRPO_ERROR_INVALID, "every checkpoint is damaged: step-" + std::to_string(steps.back()) + " (" +
                                           last_damage + "). Restore its files from a copy, or delete " +
                                           folder_.checkpoints().string() +
                                           ": the run then starts again from the beginning");
    }
  }
  later_.assign(steps.begin() + static_cast<std::ptrdiff_t>(kept), steps.end());
  for (const CheckpointState& state : checkpoints_.List()) {
    if (kept > 0 && state.step == steps[kept - 1]) return state;
  }
  return {};
}

void SavedModels::SetLaterAside() {
  for (; !later_.empty(); later_.pop_back()) checkpoints_.SetAside(later_.back());
}

std::string SavedModels::Resume() const { return ResumeCommand(folder_.path().string()); }

Error SavedModels::WithResumeAdvice(const Error& error, uint64_t step) const {
  std::vector<uint64_t> older;
  try {
    older = checkpoints_.WholeSteps(step);
  } catch (const std::exception&) {
    // Throw the original error: it says more than that older checkpoints cannot be read.
  }
  if (older.empty()) return error;
  return {error.code(), std::string(error.what()) + "; to go on from an older checkpoint: " + Resume() +
                            " --from-step N, where N is " + StepsText(older)};
}

void SavedModels::Load(uint64_t step) {
  const fs::path path = checkpoints_.PathOf(step);
  LoadCopy(KGRPO_POLICY_CURRENT, path / "policy");
  if (!fs::exists(path / "reference")) return;
  LoadCopy(KGRPO_POLICY_REFERENCE, path / "reference");
  ReferenceSaved(path);
}

void SavedModels::ReferenceSaved(const fs::path& checkpoint) {
  saved_reference_ = checkpoint / "reference";
  saved_version_ = policy_.reference_version();
}

// Every rank reads the files: the run's folder is on a file system that all of them see.
void SavedModels::LoadCopy(kgrpo_policy_copy copy, const fs::path& folder) {
  OnAllRanks(
      ranks_, [&] { return LoadOrder(copy, folder); }, [&] { policy_.Load(copy, folder); });
}

void SavedModels::RequireReference(const std::string& trainer) const {
  if (policy_.reference_version() > 0) return;
  throw Error(KGRPO_ERROR_INVALID, trainer +
                                       " now compares with a reference policy, and the steps before the checkpoint "
                                       "did not, so it has none: resume with options that need no reference");
}

void SavedModels::WriteCheckpoint(Stage& stage, uint64_t done, RunDatabase& database) {
  CheckpointState state;
  state.step = done;
  state.stage = stage.index();
  state.stage_steps = done + 1 - stage.first_step();
  // An earlier stage's is of no use to a stage that compares with none.
  const bool has_reference = stage.needs_reference() && policy_.reference_version() > 0;
  checkpoints_.Write(state, [&](const fs::path& path) {
    fs::create_directory(path / "policy");
    SaveModel(policy_, path / "policy", &config_.loop.sampling);
    Pass(faults_, "checkpoint: policy written");
    if (has_reference) SaveReference(path / "reference");
    // A stage that has not begun has no state to save.
    if (state.stage_steps > 0 && stage.may_continue_after(done)) stage.Save(path);
  });
  if (has_reference) ReferenceSaved(checkpoints_.PathOf(done));
  checkpoints_.Prune(config_.checkpoint.keep_last, config_.checkpoint.keep_best, Scores(done, database));
}

bool SavedModels::RanksByHeldout() const {
  const uint64_t every = config_.evaluation.every;
  return every > 0 && !config_.heldout_problems.empty() && config_.checkpoint.every % every == 0;
}

std::map<uint64_t, double> SavedModels::Scores(uint64_t done, RunDatabase& database) const {
  std::map<uint64_t, double> scores;
  if (RanksByHeldout()) {
    for (const auto& [step, reward] : database.MetricCurve("heldout/reward")) {
      if (rank_after_ == 0 || step > rank_after_) scores[step] = reward;
    }
    return scores;
  }
  // A step's rollouts are of the weights that the step before ended with (with loop.max_staleness half of them are one
  // update older), and each step draws other problems. Later steps are of a run before it resumed.
  std::map<uint64_t, double> problems;  // by step
  for (const std::string& problem : database.ReadProblemNames(Purpose::kTrain)) {
    auto curve = database.MetricCurve("reward/problem/" + problem);
    std::erase_if(curve, [&](const auto& point) { return point.first <= rank_after_ || point.first > done; });
    double sum = 0;
    for (const auto& [step, reward] : curve) sum += reward;
    for (const auto& [step, reward] : curve) {
      scores[step - 1] += reward - sum / static_cast<double>(curve.size());
      ++problems[step - 1];
    }
  }
  for (auto& [step, score] : scores) score /= problems[step];
  return scores;
}

// Checkpoints share the files of a reference that has not changed between them.
void SavedModels::SaveReference(const fs::path& target) {
  fs::create_directory(target);
  if (saved_version_ == policy_.reference_version() && fs::exists(saved_reference_)) {
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

FinalModel SavedModels::WriteFinal(uint64_t done, RunDatabase& database) {
  FinalModel final;
  final.step = done;
  final.by_heldout = RanksByHeldout();
  if (config_.checkpoint.final_best) {
    const std::map<uint64_t, double> scores = Scores(done, database);
    if (scores.contains(done)) final.score = final.last = scores.at(done);
    for (const CheckpointState& state : checkpoints_.List()) {
      const auto found = scores.find(state.step);
      if (state.step == done || found == scores.end() || (final.score && found->second <= *final.score)) continue;
      final.step = state.step;
      final.stage = state.stage;
      final.is_last = false;
      final.score = found->second;
    }
    if (!final.is_last) LoadCopy(KGRPO_POLICY_CURRENT, PathOf(final.step) / "policy");
  }
  WriteModel(policy_, folder_.final_model(), &config_.loop.sampling, faults_);
  return final;
}

// Only the ids of special tokens stay of the model's own file, because its sampling is not the run's.
void SaveModel(Policy& policy, const fs::path& target, const SamplingConfig* sampling) {
  policy.Save(KGRPO_POLICY_CURRENT, target);
  const bool is_hugging_face = fs::exists(target / "config.json") || fs::exists(target / "adapter_config.json");
  if (sampling == nullptr || !is_hugging_face) return;
  const fs::path path = target / "generation_config.json";
  const kgrpo_policy_info& info = policy.info();
  Json config = {{"eos_token_id", std::vector<int32_t>(info.end_ids, info.end_ids + info.end_id_count)}};
  const Json old = fs::exists(path) ? Json::parse(ReadFile(path), nullptr, false) : Json();
  for (const char* key : {"bos_token_id", "pad_token_id"}) {
    if (old.is_object() && old.contains(key)) config[key] = old[key];
  }
  config["do_sample"] = sampling->temperature > 0;
  if (sampling->temperature > 0) {
    config["temperature"] = sampling->temperature;
    config["top_k"] = sampling->top_k;  // 0, off, is written: transformers' default is 50
    config["top_p"] = sampling->top_p;
    if (sampling->min_p > 0) config["min_p"] = sampling->min_p;
  }
  WriteFileAtomically(path, config.dump(2) + "\n");
}

void WriteModel(Policy& policy, const fs::path& target, const SamplingConfig* sampling, const FaultPoints& faults) {
  const fs::path partial = target.string() + ".partial";
  fs::remove_all(partial);
  fs::create_directories(partial);
  SaveModel(policy, partial, sampling);
  Pass(faults, "final: filled");
  fs::remove_all(target);
  PublishDirectory(partial, target);
  Pass(faults, "final: renamed");
}

}  // namespace kgrpo
