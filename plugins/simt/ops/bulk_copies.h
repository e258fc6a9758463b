// Bulk copies between their issue and their end; see bulk_copies.cc. Used by barriers, exits and the checks of all
// memory accesses.
#pragma once

#include <cstdint>

#include "simt/state/machine.h"

namespace kgrpo::simt {

// Call before `lane` tests a phase of the mbarrier at `offset`. Completes the copies that the phase waits for, if it
// waits for nothing else.
void CompleteBulkLoads(Warp& warp, const Instruction& in, int lane, uint32_t offset, PhaseBarrier& barrier);

// The lanes of `mask` exit: completes their bulk stores.
void EndBulkStores(Warp& warp, uint32_t mask);

}  // namespace kgrpo::simt
