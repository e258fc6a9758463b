// Messages on the coder's answers and their cost: how many were paid for, and what has been spent when a run ends
// early. Used by loop/summary.cc, loop/run.cc, loop/evaluate_policy.cc and the command eval.
#ifndef KGRPO_LOOP_CODER_COST_H
#define KGRPO_LOOP_CODER_COST_H

#include "plugin/instances.h"
#include "store/database.h"
#include "store/records.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo {

// The metrics of a step that hold what was spent up to it.
inline constexpr const char* kCostMetric = "coder/cost_total";
inline constexpr const char* kLostCostMetric = "coder/lost_cost_total";

struct CoderCounts {
  uint64_t answers = 0;  // those that trajectories were dropped for included
  uint64_t reused = 0;   // of them: from a recording or a cache
};
CoderCounts CountAnswers(const std::vector<TrajectoryRecord>& trajectories);

// "24 of 24 answers came from a recording or a cache, and nothing was paid for them"; empty where none did.
std::string ReusedText(const CoderCounts& counts);

// Raises `spending` to what the coder says of itself, where it keeps account: it knows of calls, too, that were cut
// short, of which no record tells.
void TakeSpending(const Coder& coder, CoderSpending* spending);

// By the records of all steps up to that one, and of the demonstrations before the step that follows it.
CoderSpending ReadSpending(RunDatabase& database, uint64_t up_to_step);

// Notes what a run has cost that ends early, the calls of a step that was not finished included: for whoever is about
// to replace it. Raises it first to what an earlier stop has noted, of which a resumed run may not know yet. Throws
// nothing.
void KeepCost(RunDatabase& database, CoderSpending* spending);

// ", of it up to $0.15 for attempts without an answer", behind the cost; empty where nothing was lost.
std::string LostText(const CoderSpending& spending);

// "; the coder has cost $0.45 so far", with LostText, behind why something ended early; empty where it cost nothing.
std::string CostSoFarText(const CoderSpending& spending);

}  // namespace kgrpo
#endif
