#include "loop/run_config.h"

#include <kgrpo/sdk/error.h>

namespace kgrpo {

void CheckRunConfig(const PipelineConfig& config, const PipelineParts& parts) {
  if (parts.trainers.size() != config.stages.size()) {
    throw Error(KGRPO_ERROR_INTERNAL, "a trainer instance is needed for each stage");
  }
  for (const std::string& mistake :
       {FileMistake(config), SuggestionsMistake(config, *parts.coder), EpisodesMistake(config, parts.trainers)}) {
    if (!mistake.empty()) throw Error(KGRPO_ERROR_INVALID, mistake);
  }
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

std::string FileMistake(const PipelineConfig& config) {
  const LoopConfig& loop = config.loop;
  const size_t problems = config.train_problems.size();
  if (loop.trajectories_per_problem == 0 || loop.batch_size % loop.trajectories_per_problem != 0) {
    return "loop.batch_size (" + std::to_string(loop.batch_size) +
           ") must be a multiple of loop.trajectories_per_problem (" + std::to_string(loop.trajectories_per_problem) +
           ")";
  }
  if (loop.batch_size == 0 || loop.rounds == 0) return "loop.batch_size and loop.rounds must be at least 1";
  if (problems == 0) return "problems.train names no problem";
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

}  // namespace kgrpo
