#include "loop/run_config.h"

#include "loop/stage.h"

#include <memory>

namespace kgrpo {
namespace {

// Returns the first fault of the file; "" if there is none.
std::string FileMistake(const PipelineConfig& config) {
  const LoopConfig& loop = config.loop;
  const size_t problems = config.train_problems.size();
  std::string mistake = RoundsMistake("a step", {{"loop.batch_size", loop.batch_size}, {"loop.rounds", loop.rounds}});
  for (size_t i = 0; i < config.stages.size() && mistake.empty(); ++i) {
    mistake = RoundsMistake("a warm start", {{"trainer[" + std::to_string(i) + "].episodes", config.stages[i].episodes},
                                             {"loop.rounds", loop.rounds}});
  }
  if (mistake.empty() && config.evaluation.every > 0) {
    mistake = RoundsMistake("a held-out measurement", {{"evaluation.episodes", config.evaluation.episodes},
                                                       {"held-out problems", config.heldout_problems.size()},
                                                       {"loop.rounds", loop.rounds}});
  }
  if (!mistake.empty()) return mistake;
  const uint64_t in_a_step = loop.batch_size / loop.trajectories_per_problem;
  if (config.controls.shuffle_prompts && (problems < 2 || in_a_step < 2)) {
    return "controls.shuffle_prompts needs two problems in a step: problems.train has " + std::to_string(problems) +
           ", and loop.batch_size / loop.trajectories_per_problem is " + std::to_string(in_a_step);
  }
  return "";
}

// Describes settings of the loop that have no effect in this run.
std::vector<std::string> FileWarnings(const PipelineConfig& config) {
  uint64_t steps = 0;
  for (const StageConfig& stage : config.stages) steps += stage.steps;
  std::vector<std::string> warnings;
  const bool measures = config.evaluation.every > 0 && !config.heldout_problems.empty();
  if (measures && config.evaluation.every > steps && !config.evaluation.at_start) {
    warnings.push_back("evaluation.every has no effect: it is " + std::to_string(config.evaluation.every) +
                       ", and the run has " + std::to_string(steps) + " steps");
  }
  if (!config.checkpoint.final_best) return warnings;
  if (config.checkpoint.keep_best == 0) {
    warnings.push_back("checkpoint.final: best chooses among the last " + std::to_string(config.checkpoint.keep_last) +
                       " checkpoints: checkpoint.keep_best is 0, so earlier ones are deleted, the best included");
  }
  if (measures && config.checkpoint.every % config.evaluation.every != 0) {
    warnings.push_back("checkpoint.final: best chooses by training rewards, since checkpoint.every (" +
                       std::to_string(config.checkpoint.every) + ") is not a multiple of evaluation.every (" +
                       std::to_string(config.evaluation.every) + "), so not every checkpoint has a held-out reward");
  }
  return warnings;
}

// Returns a message if a stage draws suggestions from the coder's list, and the coder has none; else "".
std::string SuggestionsMistake(const PipelineConfig& config, const Coder& coder) {
  for (size_t i = 0; i < config.stages.size(); ++i) {
    if (config.stages[i].suggestions != SuggestionSource::kUniform || !coder.Suggestions().empty()) continue;
    return "stage " + std::to_string(i + 1) + " (" + config.stages[i].trainer.plugin +
           ") draws suggestions uniformly from the coder's list, and " + config.coder.plugin +
           " has none (it takes any text): leave this stage out, or train it in another run, whose coder has a list, "
           "and start from its model";
  }
  return "";
}

// Returns a message if a stage's trainer imitates demonstrations and none are collected; else "".
std::string EpisodesMistake(const PipelineConfig& config, const std::vector<std::unique_ptr<Trainer>>& trainers) {
  for (size_t i = 0; i < trainers.size(); ++i) {
    const StageConfig& stage = config.stages[i];
    const bool imitates = trainers[i]->source() == KGRPO_TRAINER_DEMONSTRATIONS,
               given = !stage.demonstrations.from.empty();
    const std::string name = "stage " + std::to_string(i + 1) + " (" + stage.trainer.plugin + ") ";
    if (given && !imitates) return name + "does not learn from demonstrations: leave out `demonstrations`";
    if (!imitates || given || stage.episodes > 0) continue;
    return name +
           "learns from demonstrations, but `episodes` is 0: say how many trajectories to collect, for example "
           "`episodes: 64`, or name recorded runs in `demonstrations.from`";
  }
  return "";
}

void CheckPlans(const PipelineConfig& config, const PipelineParts& parts, size_t problems, uint64_t done) {
  std::vector<std::string> faults;
  uint64_t end = 0;
  for (size_t i = 0; i < parts.trainers.size(); ++i) {
    end += config.stages[i].steps;
    if (end <= done) continue;
    kgrpo_trainer_plan plan = PlanOf(config, parts, i);
    if (plan.trajectories > 0) plan.problems = problems;
    try {
      parts.trainers[i]->CheckPlan(plan);
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_INVALID) throw;
      const PartError named(error, "trainer[" + std::to_string(i) + "]", config.stages[i].trainer.plugin,
                            config.option_places);
      faults.insert(faults.end(), named.faults().begin(), named.faults().end());
    }
  }
  if (!faults.empty()) throw PartError(KGRPO_ERROR_INVALID, std::move(faults));
}

}  // namespace

void CheckFile(const PipelineConfig& config, Findings* findings) {
  findings->Add(FileMistake(config));
  for (std::string& warning : FileWarnings(config)) findings->notes.push_back(std::move(warning));
}

void CheckParts(const PipelineConfig& config, const PipelineParts& parts, size_t problems, uint64_t done,
                Findings* findings) {
  if (parts.coder != nullptr) findings->Add(SuggestionsMistake(config, *parts.coder));
  findings->Add(EpisodesMistake(config, parts.trainers));
  findings->Try([&] { CheckPlans(config, parts, problems, done); });
}

std::string RoundsMistake(const std::string& of, const std::vector<std::pair<std::string, uint64_t>>& factors) {
  constexpr uint64_t kMostRounds = 1'000'000;  // more would not fit in memory
  uint64_t product = 1;
  bool too_many = false;
  for (const auto& [name, factor] : factors) {
    too_many = too_many || (factor != 0 && product > kMostRounds / factor);
    product *= factor;
  }
  if (!too_many) return "";
  std::string names, values;
  for (const auto& [name, factor] : factors) {
    names += (names.empty() ? "" : " x ") + name;
    values += (values.empty() ? "" : " x ") + std::to_string(factor);
  }
  return names + " is " + values + ": " + of + " takes at most " + std::to_string(kMostRounds) + " rounds";
}

}  // namespace kgrpo
