// Messages on the coder's answers and their cost: how many were paid for, and what has been spent when a run ends
// early. Used by loop/summary.cc, loop/run.cc, tools/eval.
#ifndef KGRPO_LOOP_CODER_COST_H
#define KGRPO_LOOP_CODER_COST_H

#include "loop/rollout.h"
#include "plugin/instances.h"
#include "store/database.h"
#include "store/records.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo {

// Metrics of a step with the spending up to that step, in US dollars.
inline constexpr const char* kCostMetric = "coder/cost_total";
inline constexpr const char* kLostCostMetric = "coder/lost_cost_total";

// A coder whose model runs on this machine reports it: seconds of a step for which it had its device.
inline constexpr const char* kDeviceSecondsMetric = "coder/device_seconds";

struct CoderCounts {
  uint64_t answers = 0;  // including those for which trajectories were dropped
  uint64_t reused = 0;   // answers among them that came from a recording or a cache
};

// "24 of 24 answers came from a recording or a cache, and nothing was paid for them"; empty where none did.
std::string ReusedText(const CoderCounts& counts);

// The sum in whole billionths of a dollar: the same in whatever order and parts it is added.
double SumOfDollars(double a, double b);

// The cost of the answers of rollouts that an error ended, US dollars.
double UnfinishedCost(RunDatabase& database);
// Lets the request take the answers that an earlier process had of it, and has its own kept if an error ends it. On
// several ranks those of the first are.
void KeepUnfinished(RunDatabase& database, RolloutRequest* request);

// Raises `spending` to the coder's own account, if it keeps one: it includes calls that were cut short.
void TakeSpending(const Coder& coder, CoderSpending* spending);

// Returns the spending recorded for all steps up to that one, and for demonstrations collected before the next step.
CoderSpending ReadSpending(RunDatabase& database, uint64_t up_to_step);

// Records the cost of a run that ends early, including calls of the unfinished step, for a user who is about to
// overwrite the run. First raises the cost to that recorded at an earlier stop, which a resumed run may not know yet.
// Throws nothing.
void KeepCost(RunDatabase& database, CoderSpending* spending);

// ", of it up to $0.15 for attempts without an answer", to append to the cost; empty where nothing was lost.
std::string LostText(const CoderSpending& spending);

// "; the coder has cost $0.45 so far", with LostText, to append to the reason for an early end; empty where the cost is
// 0.
std::string CostSoFarText(const CoderSpending& spending);

}  // namespace kgrpo
#endif
