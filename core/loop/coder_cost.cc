#include "loop/coder_cost.h"

#include "console/console.h"
#include "loop/trajectory.h"

#include <algorithm>
#include <map>

namespace kgrpo {

CoderCounts CountAnswers(const std::vector<TrajectoryRecord>& trajectories) {
  CoderCounts counts;
  ForEachAnswer(trajectories, [&](const CoderAnswer& answer) {
    ++counts.answers;
    counts.reused += answer.reused ? 1 : 0;
  });
  return counts;
}

std::string ReusedText(const CoderCounts& counts) {
  if (counts.reused == 0) return "";
  return std::to_string(counts.reused) + " of " + std::to_string(counts.answers) +
         " answers came from a recording or a cache, and nothing was paid for them";
}

double CostSoFar(PipelineParts& parts, double known) {
  const std::map<std::string, double> pushed = parts.take_metrics();
  const auto total = pushed.find("coder/cost_total");
  return total == pushed.end() ? known : std::max(known, total->second);
}

std::string CostSoFarText(double cost) {
  return cost > 0 ? "; the coder has cost " + FormatDollars(cost) + " so far" : "";
}

}  // namespace kgrpo
