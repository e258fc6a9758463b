// Bulk copies between their issue and their end; see bulk_copies.cc. Used by barriers, exits and the checks of all
// memory accesses.
#ifndef KGRPO_INTERPRETER_SIMT_BULK_COPIES_H_
#define KGRPO_INTERPRETER_SIMT_BULK_COPIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "interpreter/simt/machine.h"

namespace kgrpo::simt {

// Work beyond what an instruction usually takes is charged as more of them, so that a launch's budget bounds it.
inline void Charge(Grid& grid, uint64_t instructions) {
  grid.budget -= std::min(instructions, grid.budget);
}
// For looking through so many copies.
inline void ChargeWalk(Grid& grid, size_t copies) {
  Charge(grid, copies / 16);
}

// Before a phase of the mbarrier at `offset` is looked at by `lane`: the copies that it waits for arrive, where they
// are all that it waits for.
void CompleteBulkLoads(Warp& warp, const Instruction& in, int lane, uint32_t offset, PhaseBarrier& barrier);

// The lanes of `mask` exit: what they store in bulk is stored.
void EndBulkStores(Warp& warp, uint32_t mask);

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_BULK_COPIES_H_
