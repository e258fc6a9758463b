// Finds out whether a completed run has learned anything, and if not, why. Used by loop/run.cc, which ends such a run
// as a failure, and by loop/summary.cc.
#ifndef KGRPO_LOOP_LEARNED_H
#define KGRPO_LOOP_LEARNED_H

#include "loop/round_faults.h"
#include "store/database.h"

#include <array>
#include <string>

namespace kgrpo {

// Returns the faults of each part in the run.
std::array<PartFaults, kRoundParts.size()> FaultsOf(RunDatabase& database);
// "of the coder's failures the commonest, 8 times, ...", of the part that failed most often; empty without faults.
std::string CommonestFault(RunDatabase& database);

// Returns "nothing was learned: ..." for a run with a stage whose updates all had nothing to learn from: no sample, or
// only advantages of 0. Names the stage if there are several. Otherwise returns "". Demonstrations and a trainer's own
// data count as something to learn from.
std::string NothingLearned(RunDatabase& database);

}  // namespace kgrpo
#endif
