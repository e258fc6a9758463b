#include "loop/learned.h"

#include "loop/coder_faults.h"

#include <cstdint>
#include <map>
#include <set>

namespace kgrpo {

std::string CommonestFault(RunDatabase& database) {
  CoderFaults faults;
  for (const CoderFaultCount& fault : database.ReadCoderFaults())
    faults.Count(fault.outcome, fault.message, fault.count);
  return faults.Commonest();
}

std::string NothingLearned(RunDatabase& database) {
  struct StageSteps {
    std::string name;
    size_t steps = 0, with_samples = 0, taught = 0;
  };
  std::map<uint64_t, StageSteps> stages;
  const std::set<uint64_t> with_advantage = database.StepsWithAdvantage();
  for (const StepSummary& step : database.Steps()) {
    StageSteps& stage = stages[step.stage];
    stage.name = step.stage_name;
    ++stage.steps;
    if (step.reward_mean) ++stage.with_samples;
    if (!step.has_rollouts || with_advantage.contains(step.step)) ++stage.taught;
  }
  std::string text;
  for (const auto& [index, stage] : stages) {
    if (stage.taught > 0) continue;
    text += text.empty() ? "nothing was learned" : "; nor";
    if (stages.size() > 1) text += " in stage " + std::to_string(index + 1) + " (" + stage.name + ")";
    text += stage.with_samples == 0 ? ": in no step was a sample left to train on"
                                    : ": in each of the " + std::to_string(stage.with_samples) +
                                          " steps with samples every advantage was 0 (groups of one sample, equal "
                                          "returns within each group, or only masked completions)";
  }
  const std::string commonest = text.empty() ? "" : CommonestFault(database);
  return text + (commonest.empty() ? "" : "; of the coder's failures " + commonest);
}

}  // namespace kgrpo
