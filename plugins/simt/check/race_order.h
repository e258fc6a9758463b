// Shared by race.cc and race_together.cc: the order between a warp's accesses and earlier ones.
#pragma once

#include <cstdint>

#include "simt/check/access.h"
#include "simt/state/machine.h"

namespace kgrpo::simt {

// The order of an earlier event and the current access of a warp.
enum class Order : uint8_t { kBefore, kSameWarp, kUnordered };

Order OrderOf(const AccessEvent& event, const Warp& warp);

// HappenedBefore is true if the access `cell` happened before the current access of `lane` of `warp`. `event` and
// `order` remember the last answer: the cells of neighbouring lanes tend to come from one instruction.
struct Memory {
  uint32_t event = 0;
  Order order = Order::kBefore;
};
inline bool HappenedBefore(AccessCell cell, const Warp& warp, int lane, Memory& memory) {
  if (cell == 0) return true;
  const uint32_t number = cell / kLanes;
  if (number != memory.event) {
    memory.event = number;
    memory.order = OrderOf(warp.grid->events[number], warp);
  }
  if (memory.order != Order::kSameWarp) return memory.order == Order::kBefore;
  return cell % kLanes == static_cast<uint32_t>(lane) ||
         warp.grid->events[number].clock < warp.lane_known[static_cast<size_t>(lane)];
}

// Returns the number of the event for `in`, executed now by `warp`: the same one until the warp synchronises.
uint32_t NoteEvent(Warp& warp, const Instruction& in, AccessKind kind);

// Returns the number of a new event: a bulk load's bytes arrive. AnnounceArrival tells the waiters of its mbarrier.
uint32_t NoteArrival(Grid& grid, Block& block, const BulkCopy& copy);
void AnnounceArrival(const Warp& warp, PhaseBarrier& barrier);

// The shadow of the memory that `lane` accesses, and the address it begins at; null where none is kept.
RaceShadow* ShadowOf(Warp& warp, const Access& access, int lane, uint64_t& base);

// race_together.cc: records a warp's loads, all in one allocation or in shared memory. Returns false, recording
// nothing, if there may be a race or each lane must be checked by itself. `polled`: the load may see unordered writes.
bool NoteLoads(const Warp& warp, uint32_t mask, const Access& access, uint32_t event, bool polled, RaceShadow& shadow,
               uint64_t base);

}  // namespace kgrpo::simt
