// Branches, reconvergence, exits and barriers.
//
// A warp runs one group of lanes at a time, that with the lowest pc; groups that meet merge. A group that reaches an
// operation which other lanes of the warp take part in is parked until they arrive or exit: a loop that some lanes
// leave early, or an early return, then ends in the operation being executed together, as on a GPU.
#include <bit>

#include "evaluator_sim/simt/handlers.h"
#include "evaluator_sim/simt/machine.h"
#include "evaluator_sim/simt/warp_sync.h"

namespace kgrpo::simt {
namespace {

std::string LaneList(uint32_t mask) {
  std::string text;
  for (uint32_t m = mask; m != 0;) {
    const int first = std::countr_zero(m);
    int last = first;
    while (last < 31 && ((mask >> (last + 1)) & 1u) != 0) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    m &= last == 31 ? 0u : ~0u << (last + 1);
  }
  return (std::popcount(mask) == 1 ? "lane " : "lanes ") + text;
}

bool IsBarrier(const Instruction& in) {
  return in.run == &Barrier;
}

int LineOf(const Warp& warp, uint32_t pc) {
  return warp.grid->kernel->lines[pc].line;
}

// Lanes that a parked group waits for: those its operation names that are alive and not in the group. 0: it can go on.
uint32_t Missing(const Warp& warp, const LaneGroup& group) {
  const Instruction& in = warp.grid->kernel->code[group.pc];
  if (IsBarrier(in)) return warp.alive & ~group.mask;
  uint32_t missing = 0;
  for (uint32_t m = group.mask; m != 0;) {
    const uint32_t members = MembersOf(warp, in, std::countr_zero(m));
    uint32_t together = 0;
    for (uint32_t n = m; n != 0; n &= n - 1) {
      const int l = std::countr_zero(n);
      if (MembersOf(warp, in, l) == members) together |= 1u << l;
    }
    const uint32_t absent = members & warp.alive & ~together;
    if (absent == 0) return 0;
    missing |= absent;
    m &= ~together;
  }
  return missing;
}

// All groups are parked and none can go on by itself.
bool ResolveStall(Warp& warp) {
  bool all_barriers = true, all_syncwarps = true;
  uint32_t together = 0;
  for (int i = 0; i < warp.group_count; ++i) {
    const Instruction& in = warp.grid->kernel->code[warp.groups[static_cast<size_t>(i)].pc];
    all_barriers &= IsBarrier(in);
    all_syncwarps &= in.run == &SyncWarp;
    together |= warp.groups[static_cast<size_t>(i)].mask;
  }
  if (all_syncwarps) {  // __syncwarp() may be met at different places
    for (int i = 0; i < warp.group_count; ++i) {
      warp.groups[static_cast<size_t>(i)].pc += 1;
      warp.groups[static_cast<size_t>(i)].parked = false;
    }
    SynchroniseLanes(warp, together);
    return true;
  }
  const LaneGroup& first = warp.groups[0];
  const LaneGroup& second = warp.groups[warp.group_count > 1 ? 1 : 0];
  const int lane = std::countr_zero(first.mask);
  if (all_barriers) {
    bool unaligned = true;
    for (int i = 0; i < warp.group_count; ++i)
      unaligned &= (warp.grid->kernel->code[warp.groups[static_cast<size_t>(i)].pc].flags & kFlagAligned) == 0;
    if (unaligned) {  // barrier.sync: each thread arrives for itself
      ArriveAtBarrier(warp, warp.grid->kernel->code[first.pc], first.mask);
      return false;
    }
    const ThreadId other = IdOf(warp, std::countr_zero(second.mask));
    Report(warp, first.pc, lane, FindingCode::kDivergentBarrier, true, 0, "",
           "waits at a barrier that the rest of its warp (" + LaneList(warp.alive & ~first.mask) +
               ") does not reach: they wait at another one, at line " + std::to_string(LineOf(warp, second.pc)),
           &other, LineOf(warp, second.pc));
    throw Fault{};
  }
  // A warp operation whose mask names lanes that wait elsewhere.
  for (int i = 0; i < warp.group_count; ++i) {
    const LaneGroup& group = warp.groups[static_cast<size_t>(i)];
    if (IsBarrier(warp.grid->kernel->code[group.pc])) continue;
    const uint32_t missing = Missing(warp, group);
    const LaneGroup* where = &group;
    for (int j = 0; j < warp.group_count; ++j) {
      if ((warp.groups[static_cast<size_t>(j)].mask & missing) != 0) where = &warp.groups[static_cast<size_t>(j)];
    }
    const ThreadId other = IdOf(warp, std::countr_zero(missing));
    Report(warp, group.pc, std::countr_zero(group.mask), FindingCode::kInvalidShuffle, true, 0, "",
           "uses a warp operation whose mask names " + LaneList(missing) + ", which wait at line " +
               std::to_string(LineOf(warp, where->pc)),
           &other, LineOf(warp, where->pc));
    throw Fault{};
  }
  throw Fault{};
}

}  // namespace

bool Reschedule(Warp& warp) {
  if (warp.alive == 0) {
    if (warp.state != WarpState::kDone) {
      warp.state = WarpState::kDone;
      ++warp.block->done_warps;
    }
    return false;
  }
  if (warp.state != WarpState::kReady) return false;
  auto& groups = warp.groups;
  for (;;) {
    int count = warp.group_count;
    if (warp.active != 0) groups[static_cast<size_t>(count++)] = {warp.pc, warp.active, false};
    warp.active = 0;
    // Merge those at the same place.
    for (int i = 0; i < count; ++i) {
      for (int j = i + 1; j < count;) {
        LaneGroup &a = groups[static_cast<size_t>(i)], &b = groups[static_cast<size_t>(j)];
        if (a.pc != b.pc) {
          ++j;
          continue;
        }
        a.mask |= b.mask;
        a.parked &= b.parked;
        b = groups[static_cast<size_t>(--count)];
      }
    }
    warp.group_count = static_cast<uint8_t>(count);
    int next = -1;
    for (int i = 0; i < count; ++i) {
      const LaneGroup& group = groups[static_cast<size_t>(i)];
      if (!group.parked && (next < 0 || group.pc < groups[static_cast<size_t>(next)].pc)) next = i;
    }
    for (int i = 0; next < 0 && i < count; ++i) {
      if (Missing(warp, groups[static_cast<size_t>(i)]) == 0) next = i;
    }
    if (next < 0) {
      if (!ResolveStall(warp)) return false;
      continue;
    }
    warp.pc = groups[static_cast<size_t>(next)].pc;
    warp.active = groups[static_cast<size_t>(next)].mask;
    groups[static_cast<size_t>(next)] = groups[static_cast<size_t>(--warp.group_count)];
    warp.limit = UINT32_MAX;
    for (int i = 0; i < warp.group_count; ++i) {
      const LaneGroup& group = groups[static_cast<size_t>(i)];
      if (!group.parked && group.pc < warp.limit) warp.limit = group.pc;
      // A parked group ahead is met exactly at its pc; stopping there merges with it.
      if (group.parked && group.pc > warp.pc && group.pc < warp.limit) warp.limit = group.pc;
    }
    return true;
  }
}

void Park(Warp& warp, uint32_t lanes, uint32_t pc) {
  warp.groups[warp.group_count++] = {pc, lanes, true};
  warp.active &= ~lanes;
  warp.limit = 0;
}

void SynchroniseLanes(Warp& warp, uint32_t lanes) {
  ++warp.clock;
  for (uint32_t m = lanes; m != 0; m &= m - 1) warp.lane_known[static_cast<size_t>(std::countr_zero(m))] = warp.clock;
}

void Branch(Warp& warp, const Instruction& in, uint32_t mask) {
  if (mask == warp.active) {
    warp.pc = in.extra;
    return;
  }
  warp.groups[warp.group_count++] = {in.extra, mask, false};
  warp.active &= ~mask;
  warp.limit = in.extra < warp.limit ? in.extra : warp.limit;
  ++warp.splits;
}

void BranchIndexed(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t* index = SourceAs<uint32_t>(warp, in.a);
  const std::vector<uint32_t>& targets = warp.grid->kernel->branch_targets;
  for (uint32_t m = mask; m != 0;) {
    const int lead = std::countr_zero(m);
    if (index[lead] >= static_cast<uint64_t>(in.offset)) {
      Report(warp, in.index, lead, FindingCode::kTrap, true, 0, "", "branches outside of its branch table");
      throw Fault{};
    }
    uint32_t together = 0;
    for (uint32_t n = m; n != 0; n &= n - 1) {
      const int l = std::countr_zero(n);
      if (index[l] == index[lead]) together |= 1u << l;
    }
    m &= ~together;
    warp.groups[warp.group_count++] = {targets[in.extra + index[lead]], together, false};
  }
  warp.active &= ~mask;
  warp.limit = 0;
}

void Exit(Warp& warp, const Instruction&, uint32_t mask) {
  warp.alive &= ~mask;
  warp.active &= ~mask;
  warp.limit = 0;
}

void TrapOperation(Warp& warp, const Instruction& in, uint32_t mask) {
  Report(warp, in.index, std::countr_zero(mask), FindingCode::kTrap, true, 0, "", "executes a trap");
  throw Fault{};
}

// ---- barriers ----

// The warp's alive lanes are all here (or, for barrier.sync, parked at barriers).
void ArriveAtBarrier(Warp& warp, const Instruction& in, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const uint32_t id = SourceAs<uint32_t>(warp, in.a)[lane] & 15u;
  BarrierState& barrier = warp.block->barriers[id];
  barrier.expected_threads = in.b == kNoOperand ? 0 : SourceAs<uint32_t>(warp, in.b)[lane];
  barrier.arrived_threads += kLanes;
  const bool arrive = static_cast<BarrierKind>(in.offset) == BarrierKind::kArrive;
  if (arrive) {
    barrier.arrive_only = true;
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
}

void Barrier(Warp& warp, const Instruction& in, uint32_t mask) {
  if (mask != warp.alive && static_cast<BarrierKind>(in.offset) != BarrierKind::kArrive) {
    Park(warp, mask, in.index);
    return;
  }
  ArriveAtBarrier(warp, in, mask);
}

namespace {

void Release(Block& block, BarrierState& barrier) {
  Grid& grid = *block.warps[0].grid;
  const uint32_t warps = barrier.arrived_warps;
  // Threads of different warps must not be at different __syncthreads().
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
  // What a reduction over the threads yields.
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
  if (grid.checked) {
    for (uint32_t m = warps; m != 0; m &= m - 1) {
      Warp& warp = block.warps[static_cast<size_t>(std::countr_zero(m))];
      for (uint32_t n = warps; n != 0; n &= n - 1) {
        const auto w = static_cast<size_t>(std::countr_zero(n));
        const Warp& peer = block.warps[w];
        // What the peer knew is known too: barriers are transitive.
        for (size_t k = 0; k < warp.known.size(); ++k) {
          if (peer.known[k] > warp.known[k] && k != static_cast<size_t>(warp.id)) warp.known[k] = peer.known[k];
        }
        warp.known[w] = peer.clock;
      }
      // Threads that have ended did all they did before.
      for (const Warp& peer : block.warps) {
        if (peer.state == WarpState::kDone) warp.known[static_cast<size_t>(peer.id)] = UINT32_MAX;
      }
    }
  }
  barrier = {};
}

}  // namespace

void ReleaseBarriers(Block& block) {
  uint32_t waiting = 0;
  for (const Warp& warp : block.warps) {
    if (warp.state == WarpState::kBarrier) waiting |= 1u << warp.id;
  }
  if (waiting == 0) return;
  const uint32_t all = static_cast<uint32_t>(block.warps.size());
  bool released = false;
  for (BarrierState& barrier : block.barriers) {
    if (barrier.arrived_warps == 0) continue;
    const auto arrived = static_cast<uint32_t>(std::popcount(barrier.arrived_warps));
    const bool complete = barrier.expected_threads == 0
                              ? arrived + block.done_warps == all
                              : barrier.arrived_threads >= (barrier.expected_threads + 31) / 32 * 32;
    if (!complete) continue;
    Release(block, barrier);
    released = true;
  }
  if (released) return;
  // Nothing can complete and nobody runs: threads wait for ever.
  for (const Warp& warp : block.warps) {
    if (warp.state == WarpState::kReady) return;
  }
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

// ---- small ones ----

void ReadClock32(Warp& warp, const Instruction& in, uint32_t mask) {
  uint32_t* d = TargetAs<uint32_t>(warp, in.d);
  for (uint32_t m = mask; m != 0; m &= m - 1) d[std::countr_zero(m)] = static_cast<uint32_t>(warp.executed);
}
void ReadClock64(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = TargetAs<uint64_t>(warp, in.d);
  for (uint32_t m = mask; m != 0; m &= m - 1) d[std::countr_zero(m)] = warp.executed;
}
void NanoSleep(Warp& warp, const Instruction&, uint32_t) {
  warp.block->polls += 64;
  warp.yield = true;
  warp.limit = 0;
}

}  // namespace kgrpo::simt
