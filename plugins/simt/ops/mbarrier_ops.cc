// mbarrier: barriers that are objects in shared memory, with phases. What they count is kept beside the block, by
// address; the object's own bytes stay as they are.
//
// Order (checked launches): an arrival announces its warp's accesses and those that it knows of. A lane that finds the
// phase complete knows of everything announced in it.
#include <algorithm>
#include <bit>
#include <vector>

#include "simt/check/access.h"
#include "simt/check/access_counter.h"
#include "simt/ops/bulk_copies.h"
#include "simt/state/handlers.h"
#include "simt/state/machine.h"
#include "simt/state/warp_sync.h"

namespace kgrpo::simt {
namespace {

constexpr uint64_t kPendingBits = 20;  // of the token that an arrival returns; the phase is above

bool IsAfterCopies(const Instruction& in) {
  const auto kind = static_cast<ArrivalKind>(in.size);
  return kind == ArrivalKind::kAfterCopies || kind == ArrivalKind::kAfterCopiesCounted;
}

void CompleteIfDone(PhaseBarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.complete = barrier.announced;
}

// The barrier at the lane's address. Throws Fault where none was initialised there.
PhaseBarrier& BarrierAt(Warp& warp, const Instruction& in, int lane, const Access& access) {
  auto& barriers = warp.block->phase_barriers;
  const auto it = barriers.find(static_cast<uint32_t>(access.address[lane]));
  if (it != barriers.end()) return it->second;
  Report(warp, in.index, lane, FindingCode::kTrap, true, access.address[lane], "",
         "uses an mbarrier that was never initialised");
  throw Fault{};
}

void Arrive(Warp& warp, PhaseBarrier& barrier, int64_t count) {
  if (warp.grid->checked) {
    barrier.announced.Join(warp.known, warp.times);
    uint32_t& own = barrier.announced.known[static_cast<size_t>(warp.id)];
    own = std::max(own, warp.clock + 1);
  }
  barrier.pending -= count;
}

// Passes the phase's knowledge of earlier accesses to the waiting lanes.
void Acquire(Warp& warp, uint32_t lanes, const PhaseBarrier& barrier) {
  warp.fenced |= !barrier.complete.known.empty();
  Learn(warp, barrier.complete);
  SynchroniseLanes(warp, lanes, kAllLanes);  // perhaps its own warp's arrivals completed the phase
}

// Completes the bulk copies that the phase waits for, if nothing else is missing.
void FinishPhase(Warp& warp, const Instruction& in, int lane, const Access& access, PhaseBarrier& barrier) {
  if (barrier.copies == 0 || barrier.pending > 0) return;
  CompleteBulkLoads(warp, in, lane, static_cast<uint32_t>(access.address[lane]), barrier);
  CompleteIfDone(barrier);
}

void ResolveBarrier(Warp& warp, const Instruction& in, uint32_t mask, Access& access) {
  Instruction plain = in;
  plain.count = 1;
  Resolve(warp, plain, mask, 8, AccessKind::kAtomic, access);
}

}  // namespace

void MbarrierInit(Warp& warp, const Instruction& in, uint32_t mask) {
  Access access;
  ResolveBarrier(warp, in, mask, access);
  MarkWritten(warp, mask, access);
  for (const int l : EachBit(mask)) {
    if (in.b == kNoOperand) {  // mbarrier.inval
      warp.block->phase_barriers.erase(static_cast<uint32_t>(access.address[l]));
      continue;
    }
    PhaseBarrier& barrier = warp.block->phase_barriers[static_cast<uint32_t>(access.address[l])];
    barrier = {};
    barrier.pending = barrier.expected = SourceAs<uint32_t>(warp, in.b)[l];
  }
}

void MbarrierArrive(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto kind = static_cast<ArrivalKind>(in.size);
  if (IsAfterCopies(in)) {
    // The copies complete already here, since the arrival is visible only to lanes that wait for it.
    Instruction all;
    all.size = 1;
    all.index = in.index;
    WaitCopies(warp, all, mask);
  }
  Access access;
  ResolveBarrier(warp, in, mask, access);
  if (warp.grid->counter != nullptr && IsAfterCopies(in))
    warp.grid->counter->CountAsyncArrival(in, static_cast<uint32_t>(access.address[std::countr_zero(mask)]));
  ++warp.block->polls;
  for (const int l : EachBit(mask)) {
    PhaseBarrier& barrier = BarrierAt(warp, in, l, access);
    FinishPhase(warp, in, l, access, barrier);
    const uint64_t token = barrier.phase << kPendingBits | static_cast<uint64_t>(barrier.pending);
    const uint32_t value = in.b == kNoOperand ? 1 : SourceAs<uint32_t>(warp, in.b)[l];
    switch (kind) {
      case ArrivalKind::kArrive:
      case ArrivalKind::kAfterCopiesCounted: Arrive(warp, barrier, value); break;
      case ArrivalKind::kAfterCopies:  // adds an expected arrival first, so the pending count stays
        Arrive(warp, barrier, 0);
        break;
      case ArrivalKind::kDrop:
        barrier.expected -= value;
        Arrive(warp, barrier, value);
        break;
      case ArrivalKind::kExpectBytesAndArrive:
        barrier.bytes += value;
        Arrive(warp, barrier, 1);
        break;
      case ArrivalKind::kExpectBytes: barrier.bytes += value; break;
      case ArrivalKind::kCompleteBytes: barrier.bytes -= value; break;
    }
    if (barrier.pending < 0) {
      Report(warp, in.index, l, FindingCode::kTrap, true, access.address[l], "",
             "arrives at an mbarrier more often than it was initialised for");
      throw Fault{};
    }
    CompleteIfDone(barrier);
    if (in.d != kNoOperand) TargetAs<uint64_t>(warp, in.d)[l] = token;
  }
  ++warp.clock;
}

void MbarrierWait(Warp& warp, const Instruction& in, uint32_t mask) {
  Access access;
  ResolveBarrier(warp, in, mask, access);
  uint32_t complete = 0;
  for (const int l : EachBit(mask)) {
    PhaseBarrier& barrier = BarrierAt(warp, in, l, access);
    const auto done = [&] {
      return in.size == 1 ? (barrier.phase & 1u) != (SourceAs<uint32_t>(warp, in.b)[l] & 1u)
                          : barrier.phase != SourceAs<uint64_t>(warp, in.b)[l] >> kPendingBits;
    };
    if (!done()) FinishPhase(warp, in, l, access, barrier);
    if (!done()) continue;
    complete |= 1u << l;
    if (warp.grid->counter != nullptr)
      warp.grid->counter->CountWait(warp, in, static_cast<uint32_t>(access.address[l]));
    if (warp.grid->checked) Acquire(warp, 1u << l, barrier);
  }
  SetPredicate(warp, in.e, mask, complete);
  if (complete != mask) {  // other warps' turn
    if (warp.grid->counter != nullptr && complete == 0) warp.grid->counter->ForgetPoll(warp, in, mask);
    ++warp.block->polls;
    warp.yield = true;
    warp.limit = 0;
  }
}

void MbarrierPending(Warp& warp, const Instruction& in, uint32_t mask) {
  for (const int l : EachBit(mask)) {
    TargetAs<uint32_t>(warp, in.d)[l] =
        static_cast<uint32_t>(SourceAs<uint64_t>(warp, in.a)[l] & ((uint64_t{1} << kPendingBits) - 1));
  }
}

}  // namespace kgrpo::simt
