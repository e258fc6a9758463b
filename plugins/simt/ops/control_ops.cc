// Branches, reconvergence and exits.
//
// A warp runs one group of lanes at a time, the one with the lowest pc; groups that meet merge. A group is parked at an
// operation that other lanes of the warp take part in, until they arrive or exit. So after a loop that some lanes leave
// early, or an early return, all lanes execute the operation together, as on a GPU.
#include <algorithm>
#include <array>
#include <bit>

#include "simt/check/access_counter.h"
#include "simt/ops/bulk_copies.h"
#include "simt/state/handlers.h"
#include "simt/state/machine.h"
#include "simt/state/warp_sync.h"

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

bool IsBarrier(const Instruction& in) { return in.run == &Barrier; }

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

// Handles a warp whose groups are all parked, none able to go on by itself.
bool ResolveStall(Warp& warp) {
  bool all_barriers = true, all_syncwarps = true;
  uint32_t together = 0;
  for (int i = 0; i < warp.group_count; ++i) {
    const Instruction& in = warp.grid->kernel->code[warp.groups[static_cast<size_t>(i)].pc];
    all_barriers &= IsBarrier(in);
    all_syncwarps &= in.run == &SyncWarp;
    together |= warp.groups[static_cast<size_t>(i)].mask;
  }
  if (all_syncwarps) {  // lanes may meet at different __syncwarp()
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
      // Stop at a parked group's pc, to merge with it.
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

void SynchroniseLanes(Warp& warp, uint32_t lanes, uint32_t known) {
  ++warp.clock;
  std::vector<uint32_t>& pairs = warp.pair_known;
  if ((warp.alive & ~lanes) == 0) {
    pairs.clear();
  } else if (warp.grid->checked) {
    if (pairs.empty()) {
      for (const uint32_t known : warp.lane_known) pairs.insert(pairs.end(), kLanes, known);
    }
    std::array<uint32_t, kLanes> joint{};
    for (size_t other = 0; other < kLanes; ++other) {
      for (const int l : EachBit(lanes))
        joint[other] = std::max(joint[other], pairs[static_cast<size_t>(l) * kLanes + other]);
    }
    for (const int l : EachBit(known)) joint[static_cast<size_t>(l)] = warp.clock;
    for (const int l : EachBit(lanes)) std::copy(joint.begin(), joint.end(), pairs.begin() + l * kLanes);
  }
  for (const int l : EachBit(lanes)) warp.lane_known[static_cast<size_t>(l)] = warp.clock;
}

void CoverFirst(Warp& warp, uint32_t at, Edges edges) {
  Coverage& coverage = warp.grid->coverage;
  coverage.edges[at] |= edges;
  coverage.firsts.push_back({at, warp.block->index});
}

void Branch(Warp& warp, const Instruction& in, uint32_t mask) {
  Cover(warp, in.index, mask == warp.active ? kTaken : kTaken | kPassed);
  if (mask == warp.active) {
    warp.pc = in.extra;
    return;
  }
  warp.groups[warp.group_count++] = {in.extra, mask, false};
  warp.active &= ~mask;
  warp.limit = in.extra < warp.limit ? in.extra : warp.limit;
  ++warp.splits;
  if (warp.grid->counter != nullptr) warp.grid->counter->CountTimes(warp, in, 2);
}

void BranchIndexed(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t* index = SourceAs<uint32_t>(warp, in.a);
  const std::vector<uint32_t>& targets = warp.grid->kernel->branch_targets;
  uint32_t ways = 0;
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
    ++ways;
    Cover(warp, static_cast<uint32_t>(warp.grid->kernel->code.size()) + in.extra + index[lead], kTaken);
    warp.groups[warp.group_count++] = {targets[in.extra + index[lead]], together, false};
  }
  if (mask != warp.active) Cover(warp, in.index, kPassed);
  if (warp.grid->counter != nullptr) warp.grid->counter->CountTimes(warp, in, ways);
  warp.active &= ~mask;
  warp.limit = 0;
}

void Exit(Warp& warp, const Instruction& in, uint32_t mask) {
  Cover(warp, in.index, mask == warp.active ? kTaken : kTaken | kPassed);
  if (!warp.block->bulk_copies.empty()) EndBulkStores(warp, mask);
  warp.alive &= ~mask;
  warp.active &= ~mask;
  warp.limit = 0;
}

void TrapOperation(Warp& warp, const Instruction& in, uint32_t mask) {
  const bool grid_sync = warp.grid->kernel->uses_grid_sync && !warp.grid->config->cooperative;
  Report(warp, in.index, std::countr_zero(mask), FindingCode::kTrap, true, 0, "",
         grid_sync ? "executes a trap: to synchronise the grid it must be launched by cudaLaunchCooperativeKernel()"
                   : "executes a trap");
  throw Fault{};
}

void ReadClock32(Warp& warp, const Instruction& in, uint32_t mask) {
  uint32_t* d = TargetAs<uint32_t>(warp, in.d);
  for (const int l : EachBit(mask)) d[l] = static_cast<uint32_t>(warp.executed >> in.offset);
}
void ReadClock64(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = TargetAs<uint64_t>(warp, in.d);
  for (const int l : EachBit(mask)) d[l] = warp.executed;
}
void NanoSleep(Warp& warp, const Instruction& in, uint32_t mask) {
  if (warp.grid->counter != nullptr) {
    uint32_t longest = 0;
    for (const int l : EachBit(mask)) longest = std::max(longest, SourceAs<uint32_t>(warp, in.a)[l]);
    warp.grid->counter->CountTimes(warp, in, longest);
  }
  warp.block->polls += 64;
  warp.yield = true;
  warp.limit = 0;
}

}  // namespace kgrpo::simt
