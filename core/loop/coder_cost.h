// What is said of the coder's answers and their cost: how many were paid for, and what has been spent when something
// ends early. Used by loop/summary.cc, loop/run.cc, loop/evaluate_policy.cc and the command eval.
#ifndef KGRPO_LOOP_CODER_COST_H
#define KGRPO_LOOP_CODER_COST_H

#include "loop/parts.h"
#include "store/records.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo {

struct CoderCounts {
  uint64_t answers = 0;  // those that trajectories were dropped for included
  uint64_t reused = 0;   // of them: from a recording or a cache
};
CoderCounts CountAnswers(const std::vector<TrajectoryRecord>& trajectories);

// "24 of 24 answers came from a recording or a cache, and nothing was paid for them"; empty where none did.
std::string ReusedText(const CoderCounts& counts);

// US dollars that the coder has cost when something ends early. `known`: what the records tell. A coder that keeps
// account itself knows of calls, too, that were cut short. Takes the metrics that wait.
double CostSoFar(PipelineParts& parts, double known);

// "; the coder has cost $0.45 so far" behind why something ended early; empty where it cost nothing.
std::string CostSoFarText(double cost);

}  // namespace kgrpo
#endif
