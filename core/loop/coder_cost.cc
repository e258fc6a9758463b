#include "loop/coder_cost.h"

#include "loop/wire.h"
#include "store/json.h"

#include <kgrpo/support/number_text.h>  // FormatDollars

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace kgrpo {
namespace {

constexpr const char* kKept = "coder_cost";  // ReadProgress reads it, too

}  // namespace

std::string ReusedText(const CoderCounts& counts) {
  if (counts.reused == 0) return "";
  return std::to_string(counts.reused) + " of " + std::to_string(counts.answers) +
         " answers came from a recording or a cache, and nothing was paid for them";
}

double SumOfDollars(double a, double b) {
  constexpr double kUnit = 1e9;
  return static_cast<double>(std::llround(a * kUnit) + std::llround(b * kUnit)) / kUnit;
}

double UnfinishedCost(RunDatabase& database) {
  double cost = 0;
  for (const std::vector<uint8_t>& bytes : database.ReadUnfinished())
    cost = SumOfDollars(cost, CoderCost(TrajectoriesFromJson(nlohmann::ordered_json::from_cbor(bytes))));
  return cost;
}

void KeepUnfinished(RunDatabase& database, RolloutRequest* request) {
  const std::pair of = {request->purpose, request->step};
  for (const std::vector<uint8_t>& bytes : database.ReadUnfinished(of)) {
    std::ranges::move(TrajectoriesFromJson(nlohmann::ordered_json::from_cbor(bytes)),
                      std::back_inserter(request->recorded));
  }
  request->unfinished = [&database, of](const std::vector<TrajectoryRecord>& trajectories) {
    try {
      database.WriteUnfinished(of.first, of.second, nlohmann::ordered_json::to_cbor(TrajectoriesToJson(trajectories)));
    } catch (const Error& error) {  // as in KeepCost
      spdlog::error("answers of the coder cannot be recorded, a resumed run will ask for them again: {}", error.what());
    }
  };
}

void TakeSpending(const Coder& coder, CoderSpending* spending) {
  const std::optional<CoderSpending> told = coder.Spending();
  if (!told) return;
  spending->cost = std::max(spending->cost, told->cost);
  spending->lost_cost = std::max(spending->lost_cost, told->lost_cost);
}

CoderSpending ReadSpending(RunDatabase& database, uint64_t up_to_step) {
  CoderSpending spending;
  spending.cost = database.ReadCoderTotals(up_to_step).cost;
  const auto raise = [&](const char* metric, double* to) {
    for (const auto& [step, value] : database.MetricCurve(metric)) {
      if (step <= up_to_step) *to = std::max(*to, value);
    }
  };
  raise(kCostMetric, &spending.cost);
  raise(kLostCostMetric, &spending.lost_cost);
  return spending;
}

void KeepCost(RunDatabase& database, CoderSpending* spending) {
  try {
    const std::string kept = database.Get(kKept).value_or("0");
    spending->cost = std::max(spending->cost, std::strtod(kept.c_str(), nullptr));
    if (spending->cost > 0) database.Set(kKept, std::to_string(spending->cost));
  } catch (const Error& error) {  // a full disk, for example; it must not hide the error that ends the run
    spdlog::error("the cost of the coder cannot be recorded: {}", error.what());
  }
}

std::string LostText(const CoderSpending& spending) {
  return spending.lost_cost > 0
             ? ", of it up to " + FormatDollars(spending.lost_cost) + " for attempts without an answer"
             : "";
}

std::string CostSoFarText(const CoderSpending& spending) {
  if (spending.cost <= 0) return "";
  return "; the coder has cost " + FormatDollars(spending.cost) + " so far" + LostText(spending);
}

}  // namespace kgrpo
