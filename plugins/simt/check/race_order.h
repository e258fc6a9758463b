// Shared by race.cc, race_together.cc and open_choices.cc: the order between a warp's accesses and earlier ones.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simt/check/access.h"
#include "simt/state/machine.h"

namespace kgrpo::simt {

// The order of an earlier event and the current access of a warp.
enum class Order : uint8_t { kBefore, kSameWarp, kUnordered };

Order OrderOf(const AccessEvent& event, const Warp& warp);

// True if an access by `cell`'s lane (or lanes) at `clock` of the warp happened before the current access of `lane`.
inline bool LaneKnows(const Warp& warp, int lane, AccessCell cell, uint32_t clock) {
  const auto own = static_cast<size_t>(lane);
  if ((cell & kSeveralLanes) != 0) return clock < warp.lane_known[own];
  if (LaneOf(cell) == own) return true;
  return clock < (warp.pair_known.empty() ? warp.lane_known[own] : warp.pair_known[own * kLanes + LaneOf(cell)]);
}
// True if that is so for every lane.
inline bool AllLanesKnow(const Warp& warp, uint32_t clock) {
  return warp.pair_known.empty() && clock < *std::min_element(warp.lane_known.begin(), warp.lane_known.end());
}

// HappenedBefore is true if the access `cell` happened before the current access of `lane` of `warp`. `event` and
// `order` remember the last answer: the cells of neighbouring lanes tend to come from one instruction.
struct Memory {
  uint32_t event = 0;
  Order order = Order::kBefore;
};
inline bool HappenedBefore(AccessCell cell, const Warp& warp, int lane, Memory& memory) {
  if (cell == 0) return true;
  const uint32_t number = EventNumber(cell);
  if (number != memory.event) {
    memory.event = number;
    memory.order = OrderOf(warp.grid->events[number], warp);
  }
  if (memory.order != Order::kSameWarp) return memory.order == Order::kBefore;
  return LaneKnows(warp, lane, cell, warp.grid->events[number].clock);
}

// Returns true if no read of shared memory by the warp `reader` is unordered with an access of `warp` now, because the
// latest of them is not.
inline bool NoReadIsUnordered(const RaceShadow& shadow, uint32_t reader, const Warp& warp) {
  const uint32_t last = shadow.last_read(reader);
  return last < warp.all_before || last == 0 || OrderOf(warp.grid->events[last], warp) == Order::kBefore;
}

// The cell of a read by `lane` in place of `before`, a read by the same warp (or 0).
inline AccessCell ReadAfter(AccessCell before, AccessCell cell, const Warp& warp) {
  if (before == 0) return cell;
  if (LaneKnows(warp, static_cast<int>(LaneOf(cell)), before, warp.grid->events[EventNumber(before)].clock))
    return cell;
  return cell | kSeveralLanes;
}

// Returns true if two unordered accesses, not both reads, are no race: both are meant to be concurrent for the threads
// that make them, and unless one reads, one is an atomic operation.
inline bool MayBeConcurrent(const AccessEvent& one, const AccessEvent& other, bool reads) {
  const bool for_both = one.block == other.block || !(one.in_block || other.in_block);
  return one.atomic && other.atomic && for_both && (reads || one.updates || other.updates);
}

// Returns the number of the event for `in`, executed now by `warp`: the same one until the warp synchronises.
uint32_t NoteEvent(Warp& warp, const Instruction& in, AccessKind kind);

// Returns the number of a new event: a bulk load's bytes arrive. AnnounceArrival tells the waiters of its mbarrier.
uint32_t NoteArrival(Grid& grid, Block& block, const BulkCopy& copy);
void AnnounceArrival(const Warp& warp, PhaseBarrier& barrier);

// The shadow of the memory that `lane` accesses, and the address it begins at; null where none is kept.
RaceShadow* ShadowOf(Warp& warp, const Access& access, int lane, uint64_t& base);
// True if each warp has a reader's cell there.
inline bool HasCellByWarp(const Access& access) { return access.space == Space::kShared; }

// The lanes of access.distinct & mask whose address other lanes of `mask` access too.
uint32_t SharedLanes(const Access& access, uint32_t mask);

// Records a read of granule `g` by `cell`'s lane.
void NoteRead(Warp& warp, RaceShadow& shadow, const RaceShadow::Span& span, uint32_t g, AccessCell cell, bool by_warp,
              Memory& memory);

// race_together.cc: records a warp's loads, all in one allocation or in shared memory. Returns false, recording
// nothing, if there may be a race or each lane must be checked by itself. `polled`: the load may see unordered writes.
bool NoteLoads(Warp& warp, uint32_t mask, const Access& access, uint32_t event, bool polled, RaceShadow& shadow,
               uint64_t base);

}  // namespace kgrpo::simt
