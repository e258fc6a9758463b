// Finds out whether a completed run has learned anything, and if not, why. Used by loop/run.cc, which ends such a run
// as a failure, and by loop/summary.cc.
#ifndef KGRPO_LOOP_LEARNED_H
#define KGRPO_LOOP_LEARNED_H

#include "store/database.h"

#include <string>

namespace kgrpo {

// Returns the coder's commonest fault in the run and its commonest message, as CoderFaults::Commonest; empty without
// faults.
std::string CommonestFault(RunDatabase& database);

// Returns "nothing was learned: ..." for a run with a stage whose updates all had nothing to learn from: no sample, or
// only advantages of 0. Names the stage if there are several. Otherwise returns "". Demonstrations and a trainer's own
// data count as something to learn from.
std::string NothingLearned(RunDatabase& database);

}  // namespace kgrpo
#endif
