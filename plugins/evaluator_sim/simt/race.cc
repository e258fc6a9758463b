// Race detection: see race_shadow.h for how order is known.
#include <algorithm>
#include <bit>
#include <iterator>
#include <string>

#include "evaluator_sim/simt/access.h"
#include "evaluator_sim/simt/vector_clones.h"

namespace kgrpo::simt {
namespace {

// How an earlier event stands to what a warp does now.
enum class Order : uint8_t { kBefore, kSameWarp, kUnordered };

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

// Whether the access `cell` happened before what `lane` of `warp` does now. `event` and `order` remember the last
// answer: the cells of neighbouring lanes tend to come from one instruction.
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

// Forgets all accesses, to make room for new events.
void Forget(Grid& grid) {
  grid.events.assign(1, {});
  grid.shadows.clear();
  grid.recent_shadows.fill({});
  for (Block* block : grid.resident) block->shared_shadow.Reset(grid.shared_limit);
}

// The number of the event that is `in`, executed now by `warp`: the same as long as the warp has not synchronised.
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

// ---- rows: the cells of a whole warp's access, `1 << shift` a lane ----

// How the cells differ from those of the instruction that the first one names: 0: not at all; less than kLanes: in
// their lanes only, or there are none at all; else by instruction.
KGRPO_VECTOR_CLONES uint32_t DifferencesOf(const AccessCell* cells, uint32_t count, uint32_t shift) {
  const AccessCell first = cells[0] / kLanes * kLanes;
  uint32_t differences = 0;
  for (uint32_t i = 0; i < count; ++i) differences |= cells[i] ^ (first + (i >> shift));
  return differences;
}

KGRPO_VECTOR_CLONES void FillRow(AccessCell* cells, uint32_t count, uint32_t shift, uint32_t event) {
  for (uint32_t i = 0; i < count; ++i) cells[i] = event * kLanes + (i >> shift);
}

// Whether every access of a row that one instruction made happened before what its lanes do now.
bool RowHappenedBefore(const AccessCell* cells, uint32_t differences, const Warp& warp) {
  const uint32_t event = cells[0] / kLanes;
  if (event == 0) return true;
  const Order order = OrderOf(warp.grid->events[event], warp);
  if (order != Order::kSameWarp || differences == 0) return order != Order::kUnordered;
  return warp.grid->events[event].clock < *std::min_element(warp.lane_known.begin(), warp.lane_known.end());
}

uint32_t ShiftOf(const RaceShadow::Span& row) {
  return static_cast<uint32_t>(std::countr_zero(row.count / kLanes));
}

// Notes a whole warp's loads where each granule has the same history. False: it has not, or there may be a race.
bool NoteLoads(const Warp& warp, uint32_t event, bool polled, const RaceShadow::Span& row) {
  const uint32_t shift = ShiftOf(row);
  if (!polled) {
    const uint32_t differences = DifferencesOf(row.write, row.count, shift);
    if (differences >= kLanes || !RowHappenedBefore(row.write, differences, warp)) return false;
  }
  if (DifferencesOf(row.read[0], row.count, shift) >= kLanes) return false;
  const uint32_t before = row.read[0][0] / kLanes;
  const bool beside = before != 0 && before != event && OrderOf(warp.grid->events[before], warp) == Order::kUnordered;
  FillRow(row.read[beside ? 1 : 0], row.count, shift, event);
  return true;
}

}  // namespace

bool NoteStores(Warp& warp, const Instruction& in, const Access& access) {
  const uint32_t event = NoteEvent(warp, in, AccessKind::kStore);
  uint64_t base;
  RaceShadow* shadow = ShadowOf(warp, access, 0, base);
  const RaceShadow::Span row = shadow->AtRow(access.address[0] - base, access.bytes * kLanes, access.bytes);
  const uint32_t shift = ShiftOf(row);
  for (const AccessCell* cells : {row.write, row.read[0], row.read[1]}) {
    const uint32_t differences = DifferencesOf(cells, row.count, shift);
    if (differences >= kLanes || !RowHappenedBefore(cells, differences, warp)) return false;
  }
  for (AccessCell* cells : row.read) std::fill_n(cells, row.count, 0);
  FillRow(row.write, row.count, shift, event);
  return true;
}

void CheckLoadOrder(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  const uint32_t event = NoteEvent(warp, in, AccessKind::kLoad);
  const bool polled = (in.flags & kFlagVolatile) != 0;
  Memory writes, reads;
  uint64_t base = 0;
  const bool several = access.allocation == nullptr && access.space == Space::kGlobal;
  RaceShadow* shadow = several ? nullptr : ShadowOf(warp, access, std::countr_zero(mask), base);
  if (!several && shadow == nullptr) return;
  if (access.pattern == Pattern::kContiguous && mask == kAllLanes &&
      NoteLoads(warp, event, polled, shadow->AtRow(access.address[0] - base, access.bytes * kLanes, access.bytes)))
    return;
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
