// Race detection: see race_shadow.h for how order is known.
#include <algorithm>
#include <bit>
#include <iterator>
#include <string>

#include "evaluator_sim/simt/access.h"
#include "evaluator_sim/simt/race_order.h"

namespace kgrpo::simt {
namespace {

// Forgets all accesses, to make room for new events.
void Forget(Grid& grid) {
  grid.events.assign(1, {});
  grid.shadows.clear();
  grid.recent_shadows.fill({});
  for (Block* block : grid.resident) block->shared_shadow.Reset(grid.shared_limit);
}

void ReportRace(Warp& warp, const Instruction& in, int lane, const Access& access, const char* now, AccessCell earlier,
                const char* then) {
  const AccessEvent& event = warp.grid->events[earlier / kLanes];
  const ThreadId other = IdOf(*warp.grid, event.block, event.warp * kLanes + earlier % kLanes);
  const int other_line = warp.grid->kernel->lines[event.pc].line;
  std::string where = access.space == Space::kShared ? DescribeShared(*warp.grid, access.address[lane], access.bytes)
                                                     : warp.grid->memory->Describe(access.address[lane]);
  if (where.starts_with("at ")) where = where.substr(3);
  const char* missing = event.block != warp.block->index ? "synchronisation of the blocks"
                        : event.warp == warp.id          ? "__syncwarp()"
                                                         : "barrier";
  Report(warp, in.index, lane, FindingCode::kRace, false, access.address[lane], where,
         std::string(now) + " " + where + " while " + NameThread(other) + " " + then + " it" +
             (other_line > 0 ? " at line " + std::to_string(other_line) : "") + ", with no " + missing +
             " between (a race)",
         &other, other_line);
}

}  // namespace

Order OrderOf(const AccessEvent& event, const Warp& warp) {
  const Block& block = *warp.block;
  if (event.block == block.index) {
    if (event.warp == warp.id) return Order::kSameWarp;
    return event.clock < warp.known[event.warp] ? Order::kBefore : Order::kUnordered;
  }
  // Another block: it must have released after the access, and this one acquired after that.
  if (block.acquire_time == 0) return Order::kUnordered;
  const std::vector<uint64_t>& releases = warp.grid->ReleasesOf(event.block);
  return event.releases < releases.size() && releases[event.releases] < block.acquire_time ? Order::kBefore
                                                                                           : Order::kUnordered;
}

uint32_t NoteEvent(Warp& warp, const Instruction& in, AccessKind kind) {
  std::vector<AccessEvent>& events = warp.grid->events;
  AccessEvent event;
  event.block = static_cast<uint32_t>(warp.block->index);
  event.clock = warp.clock;
  event.releases = static_cast<uint32_t>(warp.block->release_times.size());
  event.pc = in.index;
  event.warp = static_cast<uint16_t>(warp.id);
  event.atomic = kind == AccessKind::kAtomic || (in.flags & kFlagVolatile) != 0;
  uint32_t& latest = warp.events[in.index];
  if (latest != 0 && latest < events.size() && events[latest] == event) return latest;
  if (events.size() >= kMostEvents || events.empty()) Forget(*warp.grid);
  latest = static_cast<uint32_t>(events.size());
  events.push_back(event);
  return latest;
}

RaceShadow* ShadowOf(Warp& warp, const Access& access, int lane, uint64_t& base) {
  Grid& grid = *warp.grid;
  base = 0;
  if (access.space == Space::kShared) return &warp.block->shared_shadow;
  if (access.space != Space::kGlobal) return nullptr;
  const Allocation* allocation =
      access.allocation != nullptr ? access.allocation : grid.memory->Find(access.address[lane]);
  if (allocation->read_only()) return nullptr;
  base = allocation->address();
  for (const RecentShadow& recent : grid.recent_shadows) {
    if (recent.owner == allocation) return recent.shadow;
  }
  RaceShadow& found = grid.shadows[allocation];
  if (found.empty()) found.Reset(allocation->bytes());
  std::copy_backward(grid.recent_shadows.begin(), std::prev(grid.recent_shadows.end()), grid.recent_shadows.end());
  grid.recent_shadows[0] = {allocation, &found};
  return &found;
}

void CheckLoadOrder(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  const uint32_t event = NoteEvent(warp, in, AccessKind::kLoad);
  const bool polled = (in.flags & kFlagVolatile) != 0;
  Memory writes, reads;
  uint64_t base = 0;
  const bool several = access.allocation == nullptr && access.space == Space::kGlobal;
  RaceShadow* shadow = several ? nullptr : ShadowOf(warp, access, std::countr_zero(mask), base);
  if (!several && shadow == nullptr) return;
  if (!several && NoteLoads(warp, mask, access, event, polled, *shadow, base)) return;
  for (uint32_t m = access.distinct & mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (several) shadow = ShadowOf(warp, access, lane, base);
    if (shadow == nullptr) continue;
    const RaceShadow::Span span = shadow->At(access.address[lane] - base, access.bytes);
    const AccessCell cell = event * kLanes + static_cast<uint32_t>(lane);
    for (uint32_t g = 0; g < span.count; ++g) {
      const AccessCell write = span.write[g];
      // A volatile read of what a plain write left is how flags are often built; it acquires, so it is let pass.
      if (write != 0 && !polled && !HappenedBefore(write, warp, lane, writes)) [[unlikely]] {
        const bool atomic = warp.grid->events[write / kLanes].atomic;
        return ReportRace(warp, in, lane, access, "reads", write, atomic ? "updates" : "writes");
      }
      const AccessCell before = span.read[0][g];
      const bool beside = before != 0 && before / kLanes != event && !HappenedBefore(before, warp, lane, reads) &&
                          reads.order != Order::kSameWarp;
      span.read[beside ? 1 : 0][g] = cell;
    }
  }
}

void CheckStoreOrder(Warp& warp, const Instruction& in, int lane, const Access& access, AccessKind kind, bool changes) {
  const uint32_t event = NoteEvent(warp, in, kind);
  uint64_t base;
  RaceShadow* shadow = ShadowOf(warp, access, lane, base);
  if (shadow == nullptr) return;
  const std::vector<AccessEvent>& events = warp.grid->events;
  const bool concurrent = events[event].atomic;
  const char* now = kind == AccessKind::kAtomic ? "atomically updates" : "writes";
  Memory memory;
  const RaceShadow::Span span = shadow->At(access.address[lane] - base, access.bytes);
  for (uint32_t g = 0; g < span.count; ++g) {
    const AccessCell write = span.write[g];
    if (changes && !HappenedBefore(write, warp, lane, memory) && !(concurrent && events[write / kLanes].atomic)) {
      return ReportRace(warp, in, lane, access, now, write, events[write / kLanes].atomic ? "updates" : "writes");
    }
    for (AccessCell* reads : span.read) {
      AccessCell& read = reads[g];
      if (HappenedBefore(read, warp, lane, memory)) {
        read = 0;
      } else if (changes && !(concurrent && events[read / kLanes].atomic)) {
        return ReportRace(warp, in, lane, access, now, read, "reads");
      }
    }
    span.write[g] = event * kLanes + static_cast<uint32_t>(lane);
  }
}

}  // namespace kgrpo::simt
