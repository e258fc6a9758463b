#include "loop/run_problems.h"

#include "config/changes.h"
#include "loop/context_room.h"
#include "loop/recorded_rounds.h"
#include "loop/run_config.h"
#include "loop/trajectory.h"
#include "store/database.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

namespace kgrpo {

namespace {

bool Measures(const PipelineConfig& config) {
  return config.evaluation.every > 0 && !config.heldout_problems.empty();
}

// Returns a function that counts opened problems, and reports 0 at once.
std::function<void()> Counter(const PipelineConfig& config, const RunProblems::Opening& opening) {
  if (!opening) return {};
  const size_t total = config.train_problems.size() + (Measures(config) ? config.heldout_problems.size() : 0);
  opening(0, total);
  return [opening, total, open = size_t{0}]() mutable { opening(++open, total); };
}

// Finds out before the first step whether each stage can imitate the runs that it names. A stage whose demonstrations
// this run has recorded does not read them again.
void RequireImitable(const PipelineConfig& config, const ProblemSet& train) {
  if (std::ranges::all_of(config.stages, [](const auto& stage) { return stage.demonstrations.from.empty(); })) return;
  const std::filesystem::path own = std::filesystem::path(config.output_dir) / "run.sqlite";
  std::vector<uint64_t> recorded;
  const RunProgress progress = std::filesystem::exists(own) ? ReadProgress(own) : RunProgress{.is_empty = true};
  if (!progress.is_foreign && !progress.is_empty) {
    RunDatabase database = RunDatabase::ToRead(own);
    const auto changes = ChangesBetween(database.Get("resolved_yaml").value_or(""), config.resolved_yaml);
    const bool other = changes && std::ranges::any_of(*changes, [](const Change& change) {
                         return change.path.find(".demonstrations") != std::string::npos;
                       });  // a run that a new one overwrites
    if (!other) recorded = database.StepsWithRounds(Purpose::kDemonstration);
  }
  uint64_t first = 1;
  for (const StageConfig& stage : config.stages) {
    std::vector<std::string> runs = stage.demonstrations.from;
    const bool with_own = std::erase(runs, kOwnRun) > 0;
    if (!runs.empty() && !std::ranges::binary_search(recorded, first)) {
      RequireSamePrompts(runs, config);
      // The first stage reads them at once.
      if (first > 1 && !with_own) RecordedRounds(runs, train).ToImitate(stage.demonstrations);
    }
    first += stage.steps;
  }
}

void RequireSameList(const std::string& which, const ProblemSet& problems, const std::vector<std::string>& before) {
  std::vector<std::string> names;
  for (size_t i = 0; i < problems.size(); ++i) names.push_back(problems[i].name);
  if (before.empty() || before == names) return;
  std::string differ;
  for (const std::string& name : before)
    if (std::find(names.begin(), names.end(), name) == names.end()) differ += " " + name + " can no longer be used.";
  for (const std::string& name : names)
    if (std::find(before.begin(), before.end(), name) == before.end()) differ += " " + name + " was left out before.";
  throw Error(KGRPO_ERROR_INVALID, "the " + which + " problems differ from those that this run began with:" + differ +
                                       " Its figures depend on the list: resume where the same problems can be used");
}

}  // namespace

RunProblems::RunProblems(const PipelineConfig& config, PipelineParts& parts, const Opening& opening)
    : RunProblems(config, parts, Counter(config, opening)) {}

RunProblems::RunProblems(const PipelineConfig& config, PipelineParts& parts, const std::function<void()>& opened_one)
    : pool(config.loop.workers),
      train(*parts.evaluator, config.train_problems, pool, config.skip_unusable, opened_one, parts.screen.get()) {
  if (Measures(config))
    heldout.emplace(*parts.evaluator, config.heldout_problems, pool, config.skip_unusable, opened_one);
  CheckRunConfig(config, parts);
  RequireImitable(config, train);
  if (const ReplayConfig& replay = config.loop.replay; !replay.from.empty()) {
    const auto recorded = std::make_shared<RecordedRounds>(replay.from, train);
    notes.push_back("loop.replay: " + std::to_string(recorded->size()) + " recorded rounds");
    parts.replay = recorded;
  }
  std::vector<PromptState> first_rounds;
  const auto add = [&](const ProblemSet& problems) {
    for (size_t i = 0; i < problems.size(); ++i)
      first_rounds.push_back(Trajectory(0, 0, problems[i], config.loop).Prompt(parts.metrics));
  };
  if (TrainsOnPrompts(parts.trainers)) add(train);
  if (heldout) add(*heldout);
  const ContextRoom room = RoomInContext(config, *parts.policy, first_rounds);
  if (!room.mistake.empty()) throw Error(KGRPO_ERROR_INVALID, room.mistake);
  for (const ProblemSet* problems : {&train, heldout ? &*heldout : nullptr}) {
    if (problems == nullptr) continue;
    for (const std::string& why : problems->skipped()) notes.push_back("left out (problems.skip_unusable): " + why);
  }
  if (!room.warning.empty()) notes.push_back(room.warning);
  for (std::string& warning : FileWarnings(config)) notes.push_back(std::move(warning));
}

void RunProblems::RequireSame(RunDatabase& database) const {
  RequireSameList("training", train, database.ReadProblemNames(Purpose::kTrain));
  if (heldout) RequireSameList("held-out", *heldout, database.ReadProblemNames(Purpose::kHeldout));
}

std::string RunProblems::Names() const {
  std::string names;
  for (const ProblemSet* problems : {&train, heldout ? &*heldout : nullptr}) {
    for (size_t i = 0; problems != nullptr && i < problems->size(); ++i) names += (*problems)[i].name + "\n";
  }
  return names;
}

}  // namespace kgrpo
