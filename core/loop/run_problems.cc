#include "loop/run_problems.h"

#include "config/changes.h"
#include "loop/prompter.h"
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

bool Measures(const PipelineConfig& config) { return config.evaluation.every > 0 && !config.heldout_problems.empty(); }

// Returns a function that counts opened problems, and reports 0 at once.
std::function<void()> Counter(const PipelineConfig& config, const Findings& findings,
                              const RunProblems::Opening& opening) {
  if (!opening) return {};
  const bool both = Measures(config) || findings.collects();
  const size_t total = config.train_problems.size() + (both ? config.heldout_problems.size() : 0);
  opening(0, total);
  return [opening, total, open = size_t{0}]() mutable { opening(++open, total); };
}

// True if any stage collects trajectories. A trainer that reads its own data needs no prompts.
bool TrainsOnPrompts(const std::vector<std::unique_ptr<Trainer>>& trainers) {
  return std::ranges::any_of(trainers, [](const auto& trainer) { return trainer->source() != KGRPO_TRAINER_OWN_DATA; });
}

// Finds out before the first step whether each stage can imitate the runs that it names. A stage whose demonstrations
// this run has recorded does not read them again.
void RequireImitable(const PipelineConfig& config, const ProblemSet& train, const PipelineParts& parts) {
  if (std::ranges::all_of(config.stages, [](const auto& stage) { return stage.demonstrations.from.empty(); })) return;
  const std::filesystem::path own = std::filesystem::path(config.output_dir) / "run.sqlite";
  std::vector<uint64_t> recorded;
  const RunProgress progress = std::filesystem::exists(own) ? ReadProgress(own) : RunProgress{.is_empty = true};
  if (!progress.is_foreign && !progress.is_empty) {
    RunDatabase database = RunDatabase::ToRead(own);
    const auto changes =
        ChangesBetween(database.Get("resolved_yaml").value_or(""), config.resolved_yaml, config.removed);
    const bool other = changes && std::ranges::any_of(*changes, [](const Change& change) {
                         return change.path.find(".demonstrations") != std::string::npos;
                       });  // a run that a new one overwrites
    if (!other) recorded = database.StepsWithRounds(Purpose::kDemonstration);
  }
  uint64_t first = 1;
  for (size_t i = 0; i < config.stages.size(); ++i) {
    std::vector<std::string> runs = config.stages[i].demonstrations.from;
    const bool with_own = std::erase(runs, kOwnRun) > 0;
    if (!runs.empty() && !std::ranges::binary_search(recorded, first)) {
      if (with_own)
        RequireSamePrompts(runs, config);
      else
        ReadImitatedRounds(config, i, first, train, parts);
    }
    first += config.stages[i].steps;
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

RunProblems::RunProblems(const PipelineConfig& config, PipelineParts& parts, Findings& findings, uint64_t done,
                         const Opening& opening)
    : RunProblems(config, parts, findings, done, Counter(config, findings, opening)) {}

RunProblems::RunProblems(const PipelineConfig& config, PipelineParts& parts, Findings& findings, uint64_t done,
                         const std::function<void()>& opened_one)
    : pool(config.loop.workers),
      train(*parts.evaluator, config.train_problems, pool, config.skip_unusable, opened_one, &findings) {
  Findings unused(Findings::Stop::kNever);
  if (Measures(config) || (findings.collects() && !config.heldout_problems.empty())) {
    heldout.emplace(*parts.evaluator, config.heldout_problems, pool, config.skip_unusable, opened_one,
                    Measures(config) ? &findings : &unused);
  }
  for (const std::string& fault : unused.failures)
    findings.notes.push_back("held-out problems, which this run does not use: " + fault);
  for (const ProblemSet* problems : {&train, heldout ? &*heldout : nullptr}) {
    if (problems == nullptr) continue;
    for (const std::string& why : problems->skipped())
      findings.notes.push_back("left out (problems.skip_unusable): " + why);
  }
  CheckParts(config, parts, train.size(), done, &findings);
  if (parts.policy != nullptr) findings.Try([&] { RequireImitable(config, train, parts); });
  if (const ReplayConfig& replay = config.loop.replay; !replay.from.empty()) {
    findings.Try([&] {
      const auto recorded = std::make_shared<RecordedRounds>(replay.from, train, config, parts.inputs);
      findings.notes.push_back("loop.replay: " + std::to_string(recorded->size()) + " recorded rounds" +
                               recorded->LeftOut());
      parts.replay = recorded;
    });
  }
  if (parts.policy != nullptr) findings.Try([&] { CheckPrompts(config, parts, &findings); });
  notes = findings.notes;
}

void RunProblems::CheckPrompts(const PipelineConfig& config, const PipelineParts& parts, Findings* findings) const {
  std::vector<PromptState> first_rounds;
  const auto add = [&](const ProblemSet& problems) {
    for (size_t i = 0; i < problems.size(); ++i)
      first_rounds.push_back(Trajectory(0, 0, problems[i], config.loop).Prompt(parts.metrics));
  };
  if (TrainsOnPrompts(parts.trainers)) add(train);
  if (heldout && Measures(config)) add(*heldout);
  const ContextRoom room = RoomInContext(config, *parts.policy, first_rounds);
  findings->Add(room.mistake);
  if (!room.warning.empty()) findings->notes.push_back(room.warning);
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
