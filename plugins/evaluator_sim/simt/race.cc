// Race detection: see race_shadow.h for how order is known.
#include <string>

#include "evaluator_sim/simt/access.h"

namespace kgrpo::simt {
namespace {

// Whether the earlier access `cell` happened before what `lane` of `warp` does now.
bool HappenedBefore(const AccessCell& cell, const Warp& warp, int lane) {
  if (cell.block == 0) return true;
  const Block& block = *warp.block;
  if (cell.block == block.index + 1) {
    const uint32_t its_warp = cell.thread / kLanes;
    if (its_warp == static_cast<uint32_t>(warp.id)) {
      return cell.thread % kLanes == static_cast<uint32_t>(lane) ||
             cell.clock < warp.lane_known[static_cast<size_t>(lane)];
    }
    return cell.clock < warp.known[its_warp];
  }
  // Another block: it must have released after the access, and this one acquired after that.
  const std::vector<uint64_t>& releases = warp.grid->ReleasesOf(cell.block - 1);
  return cell.releases < releases.size() && releases[cell.releases] < block.acquire_time;
}

AccessCell CellOf(const Warp& warp, const Instruction& in, int lane, bool atomic) {
  AccessCell cell;
  cell.block = static_cast<uint32_t>(warp.block->index + 1);
  cell.clock = warp.clock;
  cell.pc = in.index;
  cell.thread = static_cast<uint16_t>(warp.id * kLanes + lane);
  cell.atomic = atomic ? 1 : 0;
  cell.releases = static_cast<uint32_t>(warp.block->release_times.size());
  return cell;
}

void ReportRace(Warp& warp, const Instruction& in, int lane, const Access& access, const char* now,
                const AccessCell& earlier, const char* then) {
  const ThreadId other = IdOf(*warp.grid, earlier.block - 1, earlier.thread);
  const int other_line = warp.grid->kernel->lines[earlier.pc].line;
  std::string where;
  if (access.space == Space::kShared) {
    where = DescribeShared(*warp.grid, access.address[lane], access.bytes);
  } else {
    where = warp.grid->memory->Describe(access.address[lane]);
  }
  if (where.starts_with("at ")) where = where.substr(3);
  const bool same_block = earlier.block == warp.block->index + 1;
  Report(warp, in.index, lane, FindingCode::kRace, false, access.address[lane], where,
         std::string(now) + " " + where + " while " + NameThread(other) + " " + then + " it" +
             (other_line > 0 ? " at line " + std::to_string(other_line) : "") + " with no " +
             (same_block ? (earlier.thread / kLanes == static_cast<uint32_t>(warp.id) ? "__syncwarp()" : "barrier")
                         : "synchronisation of the blocks") +
             " between (a race)",
         &other, other_line);
}

}  // namespace

void CheckOrder(Warp& warp, const Instruction& in, int lane, const Access& access, AccessKind kind, bool changes) {
  Grid& grid = *warp.grid;
  RaceShadow* shadow;
  uint64_t offset = access.address[lane];
  if (access.space == Space::kShared) {
    shadow = &warp.block->shared_shadow;
  } else if (access.space == Space::kGlobal) {
    Allocation* allocation = access.allocation != nullptr ? access.allocation : grid.memory->Find(offset);
    if (allocation->read_only()) return;
    if (grid.last_shadow_owner != allocation) {
      RaceShadow& found = grid.shadows[allocation];
      if (found.empty()) found.Reset(allocation->bytes());
      grid.last_shadow_owner = allocation;
      grid.last_shadow = &found;
    }
    shadow = grid.last_shadow;
    offset -= allocation->address();
  } else {
    return;
  }
  const RaceShadow::Span span = shadow->At(offset, access.bytes);
  const bool atomic = kind == AccessKind::kAtomic;
  const bool polled = kind == AccessKind::kLoad && (in.flags & kFlagVolatile) != 0;
  const AccessCell cell = CellOf(warp, in, lane, atomic || (in.flags & kFlagVolatile) != 0);
  for (uint32_t g = 0; g < span.count; ++g) {
    Granule& granule = span.first[g];
    if (kind == AccessKind::kLoad) {
      if (granule.write.block != 0 && !HappenedBefore(granule.write, warp, lane) &&
          !(polled && granule.write.atomic != 0)) {
        // A volatile read of what a plain write left is how flags are often built; it acquires, so it is let pass too.
        if (!polled)
          return ReportRace(warp, in, lane, access, "reads", granule.write,
                            granule.write.atomic != 0 ? "updates" : "writes");
      }
      AccessCell* slot = &granule.read[0];
      if (slot->block != 0 && slot->thread / kLanes != cell.thread / kLanes && !HappenedBefore(*slot, warp, lane))
        slot = &granule.read[1];
      *slot = cell;
      continue;
    }
    const AccessCell& write = granule.write;
    if (changes && write.block != 0 && !(cell.atomic != 0 && write.atomic != 0) && !HappenedBefore(write, warp, lane)) {
      return ReportRace(warp, in, lane, access, atomic ? "atomically updates" : "writes", write,
                        write.atomic != 0 ? "updates" : "writes");
    }
    if (changes) {
      for (const AccessCell& read : granule.read) {
        if (read.block == 0 || (cell.atomic != 0 && read.atomic != 0) || HappenedBefore(read, warp, lane)) continue;
        return ReportRace(warp, in, lane, access, atomic ? "atomically updates" : "writes", read, "reads");
      }
    }
    granule.write = cell;
    if (HappenedBefore(granule.read[0], warp, lane)) granule.read[0] = {};
    if (HappenedBefore(granule.read[1], warp, lane)) granule.read[1] = {};
  }
}

}  // namespace kgrpo::simt
