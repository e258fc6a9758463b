#include "loop/learned.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace kgrpo {

std::array<PartFaults, kRoundParts.size()> FaultsOf(RunDatabase& database) {
  auto faults = NoFaults();
  for (const RoundFaultCount& count : database.ReadRoundFaults()) {
    const RoundFault fault = count.part == RoundPart::kCoder ? RoundFault{count.part, count.kind, count.message}
                                                             : FaultOf(RoundFailure{count.part, count.message});
    faults[static_cast<size_t>(fault.part)].Count(fault.kind, fault.message, count.count);
  }
  return faults;
}

std::string CommonestFault(RunDatabase& database) {
  const auto faults = FaultsOf(database);
  const PartFaults& most = *std::max_element(
      faults.begin(), faults.end(), [](const PartFaults& a, const PartFaults& b) { return a.count() < b.count(); });
  if (most.count() == 0) return "";
  return std::string("of the ") + RoundPartName(most.part()) + "'s failures " + most.Commonest();
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
                                          " steps with samples every advantage was 0 (each group had one sample "
                                          "or equal returns, or each sample was masked or its return cut)";
  }
  const std::string commonest = text.empty() ? "" : CommonestFault(database);
  return text + (commonest.empty() ? "" : "; " + commonest);
}

}  // namespace kgrpo
