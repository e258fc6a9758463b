// Barriers of a block: warps arrive, wait, and go on together. A barrier is identified by its number, wherever in the
// code it is reached. The threads of a warp that have not exited arrive together (PTX manual, 9.7.13.1 and `exit`).
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "simt/check/waits.h"
#include "simt/state/handlers.h"
#include "simt/state/machine.h"
#include "simt/state/warp_sync.h"

namespace kgrpo::simt {
namespace {

BarrierKind KindAt(const Warp& warp) {
  return static_cast<BarrierKind>(warp.grid->kernel->code[warp.barrier_pc].offset);
}

// Warps that meet at a barrier must agree on its kind: bar.red beside bar.sync, or beside another reduction, is
// unpredictable (PTX manual, 9.7.13.1). A meeting from different places is only noted, since a barrier is identified by
// its number.
void CheckMeeting(Block& block, const BarrierState& barrier) {
  const Grid& grid = *block.warps[0].grid;
  if (!grid.checked) return;
  Warp& first = block.warps[static_cast<size_t>(std::countr_zero(barrier.arrived_warps))];
  for (const int w : EachBit(barrier.arrived_warps)) {
    const Warp& warp = block.warps[static_cast<size_t>(w)];
    if (warp.barrier_pc == first.barrier_pc) continue;
    const int a = LineOf(first, first.barrier_pc), b = LineOf(warp, warp.barrier_pc);
    if (KindAt(warp) != KindAt(first)) {
      const ThreadId other = IdOf(warp, 0);
      Report(first, first.barrier_pc, 0, FindingCode::kDivergentBarrier, false, 0, "",
             "waits at barrier " + std::to_string(first.barrier) + " while other warps do something else there" +
                 (b > 0 ? ", at line " + std::to_string(b) : "") +
                 ": a reduction and a plain wait, or two reductions, cannot share a barrier",
             &other, b);
    } else if (a != b && barrier.expected_threads == 0) {
      NoteFact(*first.grid, "Warps of a block meet at different __syncthreads()",
               " (lines " + std::to_string(std::min(a, b)) + " and " + std::to_string(std::max(a, b)) +
                   "): a GPU counts arrivals by barrier number, so it works; the CUDA guide advises against it");
    }
  }
}

// Sets the warps going, each with the result of a reduction over the threads.
void Resume(Block& block, uint32_t warps) {
  const Grid& grid = *block.warps[0].grid;
  uint32_t count = 0, threads = 0;
  for (const int w : EachBit(warps)) {
    const Warp& warp = block.warps[static_cast<size_t>(w)];
    count += static_cast<uint32_t>(std::popcount(warp.barrier_predicate & warp.alive));
    threads += static_cast<uint32_t>(std::popcount(warp.alive));
  }
  for (const int w : EachBit(warps)) {
    Warp& warp = block.warps[static_cast<size_t>(w)];
    const Instruction& in = grid.kernel->code[warp.barrier_pc];
    const BarrierKind kind = KindAt(warp);
    if (kind == BarrierKind::kReducePopc) {
      for (int l = 0; l < kLanes; ++l) TargetAs<uint32_t>(warp, in.d)[l] = count;
    } else if (kind == BarrierKind::kReduceAnd) {
      SetPredicate(warp, in.e, kAllLanes, count == threads ? kAllLanes : 0u);
    } else if (kind == BarrierKind::kReduceOr) {
      SetPredicate(warp, in.e, kAllLanes, count > 0 ? kAllLanes : 0u);
    }
    warp.state = WarpState::kReady;
    warp.barrier = -1;
    for (int i = 0; i < warp.group_count; ++i) {  // barrier.sync reached at several places
      warp.groups[static_cast<size_t>(i)].pc += 1;
      warp.groups[static_cast<size_t>(i)].parked = false;
    }
    warp.limit = warp.group_count == 0 ? UINT32_MAX : 0;
    ++warp.clock;
    warp.lane_known.fill(warp.clock);
    warp.pair_known.clear();
  }
}

// bar.arrive announces the warp's accesses and those that it knows of. The warp does not wait, so its later accesses
// are not covered.
void Announce(Warp& warp, BarrierState& barrier) {
  barrier.announced.Join(warp.known, warp.times);
  uint32_t& own = barrier.announced.known[static_cast<size_t>(warp.id)];
  own = std::max(own, ++warp.clock);
}

// Orders the accesses of these warps before the barrier, and those announced at it, before the warps' later accesses.
void OrderAccesses(Block& block, uint32_t warps, const BarrierState& barrier) {
  const std::vector<uint32_t>& announced = barrier.announced.known;
  // Accesses that any of the warps made or knew of: barriers are transitive.
  std::vector<uint32_t> known(block.warps[0].known.size(), 0);
  ReleaseTimes times = barrier.announced.times;
  Announced fenced_in_block;
  bool fenced = !announced.empty();
  for (uint32_t n = warps; n != 0; n &= n - 1) {
    const Warp& peer = block.warps[static_cast<size_t>(std::countr_zero(n))];
    for (size_t w = 0; w < known.size(); ++w) known[w] = std::max(known[w], peer.known[w]);
    times.Join(peer.times);
    fenced |= peer.fenced;
    if (!peer.fenced_in_block.known.empty())
      fenced_in_block.Join(peer.fenced_in_block.known, peer.fenced_in_block.times);
  }
  for (uint32_t n = warps; n != 0; n &= n - 1) {
    const auto w = static_cast<size_t>(std::countr_zero(n));
    known[w] = block.warps[w].clock;
  }
  // Threads that have ended did all they did before.
  for (const Warp& peer : block.warps) {
    if (peer.state != WarpState::kDone) continue;
    const auto id = static_cast<size_t>(peer.id), fences = 2 * size_t{peer.grid->agents};
    known[id] = UINT32_MAX;
    if (peer.grid->kernel->bulk_copies) known[fences + id] = std::max(known[fences + id], peer.known[fences + id]);
  }
  for (const int w : EachBit(warps)) {
    Warp& warp = block.warps[static_cast<size_t>(w)];
    warp.known = known;
    warp.times = times;
    warp.fenced = fenced;
    if (!fenced_in_block.known.empty()) warp.fenced_in_block = fenced_in_block;
    if (barrier.expected_threads == 0) warp.all_before = static_cast<uint32_t>(warp.grid->events.size());
    for (size_t w = 0; w < announced.size(); ++w) {
      if (w != static_cast<size_t>(warp.id)) warp.known[w] = std::max(warp.known[w], announced[w]);
    }
  }
}

void Release(Block& block, BarrierState& barrier) {
  const uint32_t warps = barrier.arrived_warps;
  const bool checked = block.warps[0].grid->checked;
  CheckMeeting(block, barrier);
  Resume(block, warps);
  if (checked) OrderAccesses(block, warps, barrier);
  if (block.warps[0].grid->waits != nullptr) Waits::Meet(block, warps);
  barrier = {};
}

// Returns true if all threads that the barrier expects have arrived.
bool Complete(const Block& block, const BarrierState& barrier) {
  const auto arrived = static_cast<uint32_t>(std::popcount(barrier.arrived_warps));
  return barrier.expected_threads == 0 ? arrived + block.done_warps == static_cast<uint32_t>(block.warps.size())
                                       : barrier.arrived_threads >= (barrier.expected_threads + 31) / 32 * 32;
}

// The number of threads that arrivals with this count wait for.
uint32_t ThreadsExpected(const Warp& warp, uint32_t count) {
  return count == 0 ? warp.grid->warps_per_block * kLanes : (count + kLanes - 1) / kLanes * kLanes;
}

// Warps at one barrier must agree on its count.
void CheckCount(Warp& warp, const Instruction& in, int lane, uint32_t id, uint32_t count) {
  const BarrierState& barrier = warp.block->barriers[id];
  if (barrier.arrived_threads == 0) return;
  const uint32_t before = ThreadsExpected(warp, barrier.expected_threads), now = ThreadsExpected(warp, count);
  if (before == now) return;
  Report(warp, in.index, lane, FindingCode::kDivergentBarrier, true, 0, "",
         "arrives at barrier " + std::to_string(id) + " for " + std::to_string(now) +
             " threads, where others wait for " + std::to_string(before));
  throw Fault{};
}

// Reports the stall and throws the Fault of a block in which no warp can go on.
[[noreturn]] void ReportStall(Block& block, uint32_t waiting) {
  const int id = std::countr_zero(waiting);
  Warp& warp = block.warps[static_cast<size_t>(id)];
  const uint32_t rest = waiting & ~block.barriers[static_cast<size_t>(warp.barrier)].arrived_warps;
  std::string text = "waits at barrier " + std::to_string(warp.barrier) + " for threads that never arrive";
  if (rest != 0) {
    const Warp& other = block.warps[static_cast<size_t>(std::countr_zero(rest))];
    const ThreadId other_id = IdOf(other, 0);
    const int line = LineOf(other, other.barrier_pc);
    Report(warp, warp.barrier_pc, 0, FindingCode::kDivergentBarrier, true, 0, "",
           text + ": others wait at barrier " + std::to_string(other.barrier) + ", at line " + std::to_string(line),
           &other_id, line);
  } else {
    Report(warp, warp.barrier_pc, 0, FindingCode::kDivergentBarrier, true, 0, "", text);
  }
  throw Fault{};
}

}  // namespace

// The warp's alive lanes are all here (or, for barrier.sync, parked at barriers).
void ArriveAtBarrier(Warp& warp, const Instruction& in, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const uint32_t id = SourceAs<uint32_t>(warp, in.a)[lane] & 15u;
  BarrierState& barrier = warp.block->barriers[id];
  const uint32_t count = in.b == kNoOperand ? 0 : SourceAs<uint32_t>(warp, in.b)[lane];
  if (warp.grid->checked) CheckCount(warp, in, lane, id, count);
  barrier.expected_threads = count;
  barrier.arrived_threads += kLanes;
  const bool arrive = static_cast<BarrierKind>(in.offset) == BarrierKind::kArrive;
  if (arrive) {
    if (warp.grid->checked) Announce(warp, barrier);
    if (barrier.arrived_warps != 0 && Complete(*warp.block, barrier)) Release(*warp.block, barrier);
    return;
  }
  barrier.arrived_warps |= 1u << warp.id;
  warp.barrier = static_cast<int>(id);
  warp.barrier_pc = in.index;
  if (in.c != kNoOperand) {
    warp.barrier_predicate = (PredicateOf(warp, in.c) ^ ((in.flags & kFlagNegateC) != 0 ? kAllLanes : 0u));
  }
  warp.state = WarpState::kBarrier;
  warp.limit = 0;
  // A barrier with a count of its own completes at once; later arrivals belong to its next phase.
  if (Complete(*warp.block, barrier) && barrier.expected_threads != 0) Release(*warp.block, barrier);
}

void Barrier(Warp& warp, const Instruction& in, uint32_t mask) {
  if (mask != warp.alive && static_cast<BarrierKind>(in.offset) != BarrierKind::kArrive) {
    Park(warp, mask, in.index);
    return;
  }
  ArriveAtBarrier(warp, in, mask);
}

void ReleaseBarriers(Block& block) {
  uint32_t waiting = 0;
  for (const Warp& warp : block.warps) {
    if (warp.state == WarpState::kBarrier) waiting |= 1u << warp.id;
  }
  if (waiting == 0) return;
  bool released = false;
  for (BarrierState& barrier : block.barriers) {
    if (barrier.arrived_warps == 0) continue;
    if (!Complete(block, barrier)) continue;
    Release(block, barrier);
    released = true;
  }
  if (released) return;
  // Nothing can complete and nobody runs: threads wait for ever.
  for (const Warp& warp : block.warps) {
    if (warp.state == WarpState::kReady) return;
  }
  ReportStall(block, waiting);
}

}  // namespace kgrpo::simt
