// Barriers of a block: warps arrive, wait, and go on together.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "interpreter/simt/handlers.h"
#include "interpreter/simt/machine.h"
#include "interpreter/simt/warp_sync.h"

namespace kgrpo::simt {
namespace {

// Threads of different warps must not be at different __syncthreads().
void CheckSameBarrier(Block& block, const BarrierState& barrier) {
  const Grid& grid = *block.warps[0].grid;
  const uint32_t warps = barrier.arrived_warps;
  const Warp& first = block.warps[static_cast<size_t>(std::countr_zero(warps))];
  for (uint32_t m = warps; m != 0; m &= m - 1) {
    const Warp& warp = block.warps[static_cast<size_t>(std::countr_zero(m))];
    const int a = grid.kernel->lines[first.barrier_pc].line, b = grid.kernel->lines[warp.barrier_pc].line;
    const bool whole = barrier.expected_threads == 0 && first.barrier == 0;
    if (grid.checked && whole && warp.barrier_pc != first.barrier_pc && (a != b || a == 0)) {
      const ThreadId other = IdOf(warp, 0);
      Report(const_cast<Warp&>(first), first.barrier_pc, 0, FindingCode::kDivergentBarrier, false, 0, "",
             "waits at one barrier while other warps of its block wait at another, at line " + std::to_string(b),
             &other, b);
    }
  }
}

// Sets the warps going, each with the result of a reduction over the threads.
void Resume(Block& block, uint32_t warps) {
  const Grid& grid = *block.warps[0].grid;
  uint32_t count = 0, threads = 0;
  for (uint32_t m = warps; m != 0; m &= m - 1) {
    const Warp& warp = block.warps[static_cast<size_t>(std::countr_zero(m))];
    count += static_cast<uint32_t>(std::popcount(warp.barrier_predicate & warp.alive));
    threads += static_cast<uint32_t>(std::popcount(warp.alive));
  }
  for (uint32_t m = warps; m != 0; m &= m - 1) {
    Warp& warp = block.warps[static_cast<size_t>(std::countr_zero(m))];
    const Instruction& in = grid.kernel->code[warp.barrier_pc];
    const auto kind = static_cast<BarrierKind>(in.offset);
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
  }
}

// bar.arrive announces what the warp did and what it knew; the warp does not wait, so what it does next is not covered.
void Announce(Warp& warp, BarrierState& barrier) {
  std::vector<uint32_t>& announced = barrier.announced;
  announced.resize(warp.known.size(), 0);
  for (size_t w = 0; w < announced.size(); ++w) announced[w] = std::max(announced[w], warp.known[w]);
  const auto own = static_cast<size_t>(warp.id);
  announced[own] = std::max(announced[own], ++warp.clock);
  barrier.announced_time = std::max(barrier.announced_time, warp.acquire_time);
}

// Orders what the warps did before the barrier, and what others announced at it, before what they do next.
void OrderAccesses(Block& block, uint32_t warps, const BarrierState& barrier) {
  const std::vector<uint32_t>& announced = barrier.announced;
  // What any of them did, or knew: barriers are transitive.
  std::vector<uint32_t> known(2 * block.warps.size(), 0);
  uint64_t acquired = barrier.announced_time;
  bool fenced = !announced.empty();
  for (uint32_t n = warps; n != 0; n &= n - 1) {
    const Warp& peer = block.warps[static_cast<size_t>(std::countr_zero(n))];
    for (size_t w = 0; w < known.size(); ++w) known[w] = std::max(known[w], peer.known[w]);
    acquired = std::max(acquired, peer.acquire_time);
    fenced |= peer.fenced;
  }
  for (uint32_t n = warps; n != 0; n &= n - 1) {
    const auto w = static_cast<size_t>(std::countr_zero(n));
    known[w] = block.warps[w].clock;
  }
  // Threads that have ended did all they did before.
  for (const Warp& peer : block.warps) {
    if (peer.state == WarpState::kDone) known[static_cast<size_t>(peer.id)] = UINT32_MAX;
  }
  for (uint32_t m = warps; m != 0; m &= m - 1) {
    Warp& warp = block.warps[static_cast<size_t>(std::countr_zero(m))];
    warp.known = known;
    warp.acquire_time = acquired;
    warp.fenced = fenced;
    for (size_t w = 0; w < announced.size(); ++w) {
      if (w != static_cast<size_t>(warp.id)) warp.known[w] = std::max(warp.known[w], announced[w]);
    }
  }
}

void Release(Block& block, BarrierState& barrier) {
  const uint32_t warps = barrier.arrived_warps;
  const bool checked = block.warps[0].grid->checked;
  CheckSameBarrier(block, barrier);
  Resume(block, warps);
  if (checked) OrderAccesses(block, warps, barrier);
  barrier = {};
}

// Whether all that the barrier expects have arrived.
bool Complete(const Block& block, const BarrierState& barrier) {
  const auto arrived = static_cast<uint32_t>(std::popcount(barrier.arrived_warps));
  return barrier.expected_threads == 0 ? arrived + block.done_warps == static_cast<uint32_t>(block.warps.size())
                                       : barrier.arrived_threads >= (barrier.expected_threads + 31) / 32 * 32;
}

// Throws the fault of a block in which nobody can go on.
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
  barrier.expected_threads = in.b == kNoOperand ? 0 : SourceAs<uint32_t>(warp, in.b)[lane];
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
  // With a count of its own it completes at once: who comes later waits for the next time.
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
