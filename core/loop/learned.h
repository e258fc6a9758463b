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

// True if no step of the run had a sample to train on. Demonstrations and a trainer's own data are
// samples.
bool NothingWasLearned(RunDatabase& database);

inline constexpr const char* kNothingLearned = "nothing was learned: in no step was a sample left to train on";

}  // namespace kgrpo
#endif
