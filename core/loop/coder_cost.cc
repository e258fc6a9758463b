#include "loop/coder_cost.h"

#include "console/console.h"
#include "loop/trajectory.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdlib>

namespace kgrpo {
namespace {

constexpr const char* kKept = "coder_cost";  // ReadProgress reads it, too

}  // namespace

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

void CoderSpending::Take(const std::map<std::string, double>& metrics) {
  if (const auto total = metrics.find("coder/cost_total"); total != metrics.end()) cost = std::max(cost, total->second);
  if (const auto total = metrics.find("coder/lost_cost_total"); total != metrics.end())
    lost = std::max(lost, total->second);
}

CoderSpending ReadSpending(RunDatabase& database, uint64_t up_to_step) {
  CoderSpending spending;
  spending.cost = database.ReadCoderTotals(up_to_step).cost;
  for (const char* name : {"coder/cost_total", "coder/lost_cost_total"}) {
    for (const auto& [step, value] : database.MetricCurve(name)) {
      if (step <= up_to_step) spending.Take({{name, value}});
    }
  }
  return spending;
}

void KeepCost(RunDatabase& database, CoderSpending* spending) {
  try {
    const std::string kept = database.Get(kKept).value_or("0");
    spending->cost = std::max(spending->cost, std::strtod(kept.c_str(), nullptr));
    if (spending->cost > 0) database.Set(kKept, std::to_string(spending->cost));
  } catch (const Error&) {
    // The steps' own metrics have all but the last of it, and why the run ends is to be heard.
  }
}

std::string LostText(const CoderSpending& spending) {
  return spending.lost > 0 ? ", of it up to " + FormatDollars(spending.lost) + " for attempts without an answer" : "";
}

std::string CostSoFarText(const CoderSpending& spending) {
  if (spending.cost <= 0) return "";
  return "; the coder has cost " + FormatDollars(spending.cost) + " so far" + LostText(spending);
}

}  // namespace kgrpo
