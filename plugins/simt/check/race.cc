// Race detection: see race_shadow.h for how order is known.
#include <algorithm>
#include <bit>
#include <iterator>
#include <string>

#include "simt/check/access.h"
#include "simt/check/race_order.h"

namespace kgrpo::simt {
namespace {

// Forgets all accesses, to make room for new events.
void Forget(Grid& grid) {
  grid.compares_launches = false;
  grid.events.assign(1, {});
  grid.shadows.clear();
  grid.recent_shadows.fill({});
  for (Block* block : grid.resident) {
    block->shared_shadow.Reset(grid.shared_limit, grid.warps_per_block);
    for (Warp& warp : block->warps) warp.all_before = 0;
  }
}

void ReportRace(Warp& warp, const Instruction& in, int lane, const Access& access, const char* now, AccessCell earlier,
                const char* then) {
  AddFinding(*warp.grid, RaceOf(warp, in.index, static_cast<uint32_t>(warp.id * kLanes + lane), access.space,
                                access.address[lane], access.bytes, now, earlier, then));
}

// Names a load in RacingReads: the event that it noted, the lane, and a word that it read, in a shared array or an
// allocation that has another address in another launch.
uint64_t RacingKey(const AccessEvent& event, uint32_t lane, uint64_t address, const Allocation* allocation) {
  const uint64_t place = allocation == nullptr ? 0 : allocation->place() + 1;
  const uint64_t offset = allocation == nullptr ? address : address - allocation->address();
  uint64_t key = place;
  for (const uint64_t part : {uint64_t{event.block} << 32 | event.pc, uint64_t{event.clock} << 32 | event.warp,
                              (offset & ~uint64_t{3}) << 5 ^ lane}) {
    key = (key ^ part) * 0x9E3779B97F4A7C15ull;
    key ^= key >> 29;
  }
  return key;
}

const Allocation* AllocationOf(const Warp& warp, const Access& access, int lane) {
  if (access.space != Space::kGlobal) return nullptr;
  return access.allocation != nullptr ? access.allocation : FindAllocation(*warp.grid, access.address[lane]);
}

// The lanes of a load of which an earlier launch has shown that others overwrite what it reads; they become suspects.
uint32_t AddRacingReads(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, uint32_t event,
                        uint32_t elements) {
  const RacingReads* known = warp.grid->config->racing_reads;
  if (known == nullptr || elements == 0) return 0;
  uint32_t racing = 0;
  if (known->reads.empty()) return 0;
  for (const int l : EachBit(access.distinct & mask)) {
    const Allocation* allocation = AllocationOf(warp, access, l);
    for (uint32_t from = 0; from < access.bytes; from += 4) {
      const auto found = known->reads.find(
          RacingKey(warp.grid->events[event], static_cast<uint32_t>(l), access.address[l] + from, allocation));
      if (found == known->reads.end()) continue;
      const uint32_t each = access.bytes / elements;
      uint32_t which = 0;
      for (uint32_t e = from / each; e < elements && e * each < from + 4; ++e) which |= 1u << e;
      AddSuspect(warp, in, mask & ~found->second.apart, access, l, which,
                 {.address = access.address[l], .bytes = access.bytes, .race = found->second.race + 1});
      racing |= 1u << l;
    }
  }
  return racing;
}

// Notes that a load's value was overwritten, if its uses can be watched. False: the race must be reported.
bool NoteRacingRead(Warp& warp, const Instruction& in, int lane, const Access& access, uint64_t address,
                    const char* now, AccessCell read) {
  constexpr size_t kMost = 1u << 20;
  Grid& grid = *warp.grid;
  const AccessEvent& event = grid.events[EventNumber(read)];
  RacingReads& racing = grid.result->racing_reads;
  if (!IsWatched(*grid.kernel, grid.kernel->code[event.pc]) || event.warp == grid.warps_per_block ||
      racing.reads.size() >= kMost)
    return false;
  const bool same_warp = event.block == warp.block->index && event.warp == warp.id;
  const uint32_t apart = same_warp ? 1u << lane : 0;
  const uint64_t key = RacingKey(event, LaneOf(read), address, AllocationOf(warp, access, lane));
  const auto [at, added] = racing.reads.try_emplace(key, RacingReads::Read{0, apart});
  at->second.apart &= apart;
  if (!added) return true;
  Finding race = RaceOf(warp, in.index, static_cast<uint32_t>(warp.id * kLanes + lane), access.space,
                        access.address[lane], access.bytes, now, read, "reads");
  race.may_be_unused = true;
  auto& races = racing.races;
  auto same = std::find_if(races.begin(), races.end(), [&](const Finding& one) {
    return one.line == race.line && one.other_line == race.other_line;
  });
  if (same == races.end()) same = races.insert(races.end(), std::move(race));
  at->second.race = static_cast<uint32_t>(same - races.begin());
  return true;
}

bool IsSharedVolatile(const Instruction& in, const Access& access) {
  return access.space == Space::kShared && (in.flags & kFlagPlainVolatile) != 0;
}

// Returns true if `cell` is a volatile access to shared memory by another lane of `warp`, and the access now is
// volatile too: code that relies on a warp's lanes running in step. Volatile keeps the accesses, not their order among
// lanes.
bool InStep(AccessCell cell, const Warp& warp, const Instruction& in, const Access& access) {
  const AccessEvent& event = warp.grid->events[EventNumber(cell)];
  return IsSharedVolatile(in, access) && event.warp == warp.id &&
         (warp.grid->kernel->code[event.pc].flags & kFlagPlainVolatile) != 0;
}

// Returns true if a read may see the unordered write `cell`. Flags are often built as a plain write and a volatile
// read, which acquires, so that is allowed.
bool MayBePolling(AccessCell cell, const Warp& warp, const Instruction& in, const Access& access) {
  return (in.flags & kFlagVolatile) != 0 && !InStep(cell, warp, in, access);
}

}  // namespace

bool RacingReads::Add(const RacingReads& others) {
  const size_t before = reads.size() + crowded.size();
  const auto first = static_cast<uint32_t>(races.size());
  races.insert(races.end(), others.races.begin(), others.races.end());
  for (const auto& [key, race] : others.reads) reads.emplace(key, Read{first + race.race, race.apart});
  crowded.insert(others.crowded.begin(), others.crowded.end());
  return reads.size() + crowded.size() != before;
}

Finding RaceOf(const Warp& warp, uint32_t pc, uint32_t thread, Space space, uint64_t address, uint32_t bytes,
               const char* now, AccessCell earlier, const char* then, const std::string& why) {
  const Grid& grid = *warp.grid;
  const AccessEvent& event = grid.events[EventNumber(earlier)];
  const bool copied = event.warp == grid.warps_per_block;
  const uint32_t other_warp = copied ? event.issuer : event.warp;
  const ThreadId other = IdOf(grid, event.block, other_warp * kLanes + LaneOf(earlier));
  const int other_line = LineAt(grid, event.pc);
  std::string where = space == Space::kShared ? DescribeShared(grid, address, bytes) : grid.memory->Describe(address);
  if (where.starts_with("at ")) where = where.substr(3);
  const bool in_warp = !copied && event.block == warp.block->index && event.warp == thread / kLanes;
  const char* missing = event.block != warp.block->index ? "synchronisation of the blocks"
                        : copied                         ? "wait for its mbarrier"
                        : in_warp                        ? "__syncwarp() or barrier"
                                                         : "barrier";
  Finding race =
      MakeFinding(grid, pc, IdOf(grid, warp.block->index, thread), FindingCode::kRace, address, where,
                  std::string(now) + " " + where + " while " + NameThread(other) + " " +
                      (copied ? "copies to it by cp.async.bulk" : then + std::string(" it")) +
                      (other_line > 0 ? " at line " + std::to_string(other_line) : "") + ", " +
                      (why.empty() ? std::string("with no ") + missing + " between" : why) + " (a race" +
                      (why.empty() && in_warp ? "; if other warps take part, only a barrier mends it)" : ")"));
  race.has_other = true;
  race.other = other;
  race.other_line = other_line;
  return race;
}

Order OrderOf(const AccessEvent& event, const Warp& warp) {
  if (event.block == warp.block->index) {
    if (event.warp == warp.id) return Order::kSameWarp;
    if (event.clock < warp.known[event.warp]) return Order::kBefore;
  }
  if (event.released != 0 && event.released <= warp.times.observed) return Order::kBefore;
  // Through memory: it must have been released after the access, and this warp must have acquired that.
  if (warp.times.acquired == 0) return Order::kUnordered;
  const auto block = warp.grid->released.find(event.block);
  if (block == warp.grid->released.end()) return Order::kUnordered;
  const std::vector<Released>& released = block->second[event.warp];
  const auto first = std::upper_bound(released.begin(), released.end(), event.clock,
                                      [](uint32_t clock, const Released& one) { return clock < one.clock; });
  return first != released.end() && first->time <= warp.times.acquired ? Order::kBefore : Order::kUnordered;
}

uint32_t NoteEvent(Warp& warp, const Instruction& in, AccessKind kind) {
  std::vector<AccessEvent>& events = warp.grid->events;
  AccessEvent event;
  event.block = static_cast<uint32_t>(warp.block->index);
  event.clock = warp.clock;
  event.pc = in.index;
  event.warp = static_cast<uint16_t>(warp.id);
  event.atomic = kind == AccessKind::kAtomic || (in.flags & kFlagVolatile) != 0;
  event.updates = kind == AccessKind::kAtomic;
  event.in_block = event.atomic && (in.flags & kFlagBlockScope) != 0;
  event.released = event.atomic && kind != AccessKind::kLoad ? warp.releases : 0;
  uint32_t& latest = warp.events[in.index];
  if (latest != 0 && latest < events.size() && events[latest] == event) return latest;
  if (events.size() >= kMostEvents) Forget(*warp.grid);
  latest = static_cast<uint32_t>(events.size());
  events.push_back(event);
  return latest;
}

uint32_t NoteArrival(Grid& grid, Block& block, const BulkCopy& copy) {
  if (grid.events.size() >= kMostEvents) Forget(grid);
  AccessEvent event;
  event.block = static_cast<uint32_t>(block.index);
  event.clock = ++block.bulk_clock;
  event.pc = copy.pc;
  event.warp = static_cast<uint16_t>(grid.warps_per_block);
  event.issuer = static_cast<uint8_t>(copy.warp);
  grid.events.push_back(event);
  return static_cast<uint32_t>(grid.events.size() - 1);
}

void AnnounceArrival(const Warp& warp, PhaseBarrier& barrier) {
  barrier.announced.known.resize(warp.known.size(), 0);
  uint32_t& engine = barrier.announced.known[warp.grid->warps_per_block];
  engine = std::max(engine, warp.block->bulk_clock + 1);
}

RaceShadow* ShadowOf(Warp& warp, const Access& access, int lane, uint64_t& base) {
  Grid& grid = *warp.grid;
  base = 0;
  if (access.space == Space::kShared) return &warp.block->shared_shadow;
  if (access.space != Space::kGlobal) return nullptr;
  const Allocation* allocation =
      access.allocation != nullptr ? access.allocation : grid.memory->Find(access.address[lane]);
  if (allocation->read_only() || !grid.checks_global_order) return nullptr;
  base = allocation->address();
  for (const RecentShadow& recent : grid.recent_shadows) {
    if (recent.owner == allocation) return recent.shadow;
  }
  RaceShadow& found = grid.shadows[allocation];
  if (found.empty()) {
    found.Reset(allocation->bytes(), RaceShadow::kGlobalReaders);
    const RacingReads* earlier = grid.config->racing_reads;
    if (earlier != nullptr && earlier->crowded.contains(allocation->place())) found.KeepFurther();
  }
  std::copy_backward(grid.recent_shadows.begin(), std::prev(grid.recent_shadows.end()), grid.recent_shadows.end());
  grid.recent_shadows[0] = {allocation, &found};
  return &found;
}

uint32_t SharedLanes(const Access& access, uint32_t mask) {
  const uint32_t repeats = mask & ~access.distinct;
  if (repeats == 0) return 0;
  if (access.pattern == Pattern::kUniform) return access.distinct & mask;
  uint32_t shared = 0;
  for (const int l : EachBit(access.distinct & mask)) {
    for (const int by : {1, kLanes / 2}) {
      const int other = l - by;
      if (other >= 0 && ((repeats >> other) & 1u) != 0 && access.address[other] == access.address[l]) shared |= 1u << l;
    }
  }
  return shared;
}

void NoteRead(Warp& warp, RaceShadow& shadow, const RaceShadow::Span& span, uint32_t g, AccessCell cell, bool by_warp,
              Memory& memory) {
  if (by_warp) {
    AccessCell& own = span.Reader(static_cast<uint32_t>(warp.id))[g];
    own = ReadAfter(own, cell, warp);
    return;
  }
  // In place of a read of the same warp or of one that happened before; else in the next cell.
  for (uint32_t reader = 0; reader < RaceShadow::kGlobalReaders; ++reader) {
    AccessCell& before = span.Reader(reader)[g];
    if (HappenedBefore(before, warp, static_cast<int>(LaneOf(cell)), memory)) {
      before = cell;
      return;
    }
    if (memory.order == Order::kSameWarp) {
      before = cell | kSeveralLanes;
      return;
    }
  }
  AccessCell& last = span.Reader(RaceShadow::kGlobalReaders - 1)[g];
  if (EventNumber(last) != EventNumber(cell)) shadow.Drop(&span.dropped[g], last);
  last = cell;
}

void CheckLoadOrder(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, uint32_t elements) {
  if (access.space == Space::kGlobal && TouchesCopies(warp, mask, access, false)) [[unlikely]] {
    for (const int lane : EachBit(mask)) {
      if (ReportPending(warp, in, lane, access, false, "reads")) return;
    }
  }
  const uint32_t event = NoteEvent(warp, in, AccessKind::kLoad);
  mask &= ~AddRacingReads(warp, in, mask, access, event, elements);
  if ((access.distinct & mask) == 0) return;
  const bool polled = (in.flags & kFlagVolatile) != 0 && !IsSharedVolatile(in, access);
  Memory writes, atomics, reads;
  const bool by_warp = HasCellByWarp(access);
  const uint32_t shared_lanes = SharedLanes(access, mask);
  uint64_t base = 0;
  const bool several = access.allocation == nullptr && access.space == Space::kGlobal;
  RaceShadow* shadow = several ? nullptr : ShadowOf(warp, access, std::countr_zero(mask), base);
  if (!several && shadow == nullptr) return;
  if (!several && NoteLoads(warp, mask, access, event, polled, *shadow, base)) return;
  for (const int lane : EachBit(access.distinct & mask)) {
    if (several) shadow = ShadowOf(warp, access, lane, base);
    if (shadow == nullptr) continue;
    const RaceShadow::Span span = shadow->At(access.address[lane] - base, access.bytes);
    const AccessCell cell =
        event * kLanes + static_cast<uint32_t>(lane) + (((shared_lanes >> lane) & 1u) != 0 ? kSeveralLanes : 0);
    if (by_warp) shadow->ExpectReads(static_cast<uint32_t>(warp.id), event);
    for (uint32_t g = 0; g < span.count; ++g) {
      for (const AccessCell write : {span.write[g], span.atomic[g]}) {
        if (write == 0 || HappenedBefore(write, warp, lane, write == span.write[g] ? writes : atomics) ||
            MayBePolling(write, warp, in, access))
          continue;
        if (elements == 0)
          return ReportRace(warp, in, lane, access, "reads", write,
                            warp.grid->events[EventNumber(write)].atomic ? "updates" : "writes");
        const uint32_t element = g * elements / span.count;
        uint32_t which = 1u << element;  // a granule may hold several elements
        for (uint32_t e = element + 1; e * span.count < (g + 1) * elements; ++e) which |= 1u << e;
        AddSuspect(warp, in, mask, access, lane, which,
                   {.address = access.address[lane], .bytes = access.bytes, .earlier = write});
        break;
      }
      NoteRead(warp, *shadow, span, g, cell, by_warp, reads);
    }
  }
}

void CheckImageReadOrder(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  for (const int lane : EachBit(access.distinct & mask)) {
    uint64_t base = 0;
    RaceShadow* shadow = ShadowOf(warp, access, lane, base);
    if (shadow == nullptr) continue;
    const RaceShadow::Span span = shadow->At(access.address[lane] - base, access.bytes);
    for (uint32_t g = 0; g < span.count; ++g) {
      const AccessCell write = span.write[g] != 0 ? span.write[g] : span.atomic[g];
      if (write == 0) continue;
      // Such reads need not see what the launch writes (CUDA C++ programming guide, Texture and Surface Memory).
      Finding race = RaceOf(warp, in.index, static_cast<uint32_t>(warp.id * kLanes + lane), access.space,
                            access.address[lane], access.bytes, "reads", write, "writes",
                            "and a read by a texture or surface sees only what was written before the launch");
      return AddFinding(*warp.grid, std::move(race));
    }
  }
  CheckLoadOrder(warp, in, mask, access);
}

void CheckStoreOrder(Warp& warp, const Instruction& in, int lane, const Access& access, AccessKind kind, bool changes) {
  if (TouchesCopies(warp, 1u << lane, access, true) &&
      ReportPending(warp, in, lane, access, true, kind == AccessKind::kAtomic ? "atomically updates" : "writes"))
    return;
  const uint32_t event = NoteEvent(warp, in, kind);
  uint64_t base;
  RaceShadow* shadow = ShadowOf(warp, access, lane, base);
  if (shadow == nullptr) return;
  const std::vector<AccessEvent>& events = warp.grid->events;
  const bool concurrent = events[event].atomic;
  const char* now = kind == AccessKind::kAtomic ? "atomically updates" : "writes";
  if (concurrent) shadow->ExpectAtomics();
  const bool by_warp = HasCellByWarp(access);
  Memory memory;
  const RaceShadow::Span span = shadow->At(access.address[lane] - base, access.bytes);
  for (uint32_t g = 0; g < span.count; ++g) {
    const AccessCell write = span.write[g], atomic = span.atomic[g];
    if (changes && !HappenedBefore(write, warp, lane, memory)) {
      return ReportRace(warp, in, lane, access, now, write, "writes");
    }
    if (changes && !HappenedBefore(atomic, warp, lane, memory) &&
        (!MayBeConcurrent(events[event], events[EventNumber(atomic)], false) || InStep(atomic, warp, in, access))) {
      return ReportRace(warp, in, lane, access, now, atomic, "updates");
    }
    // Returns false if the write races with the read, and clears a read that need not be kept.
    const auto ordered = [&](AccessCell& read) {
      if (!HappenedBefore(read, warp, lane, memory)) {
        if (!changes) return true;
        if (MayBeConcurrent(events[event], events[EventNumber(read)], true) && !InStep(read, warp, in, access))
          return true;
        const uint64_t granule = access.address[lane] + uint64_t{g} * access.bytes / span.count;
        if (!NoteRacingRead(warp, in, lane, access, granule, now, read)) return false;
      }
      read = 0;
      return true;
    };
    for (uint32_t reader = 0; reader < shadow->readers(); ++reader) {
      if (by_warp && NoReadIsUnordered(*shadow, reader, warp)) continue;
      AccessCell& read = span.Reader(reader)[g];
      if (read != 0 && !ordered(read)) return ReportRace(warp, in, lane, access, now, read, "reads");
    }
    if (!by_warp && span.dropped[g] != 0 && changes &&
        !MayBeConcurrent(events[event], events[EventNumber(span.dropped[g])], true)) {
      if (!shadow->keeps_further())
        warp.grid->result->racing_reads.crowded.insert(AllocationOf(warp, access, lane)->place());
      for (AccessCell read : shadow->FurtherOf(&span.dropped[g])) {
        if (!ordered(read)) return ReportRace(warp, in, lane, access, now, read, "reads");
      }
      shadow->ForgetDropped(&span.dropped[g]);
    }
    // An atomic access keeps the plain write before it: later accesses of others may be unordered with that write.
    const AccessCell cell = event * kLanes + static_cast<uint32_t>(lane);
    if (concurrent) {
      span.atomic[g] = cell;
    } else {
      span.write[g] = cell;
      if (atomic != 0) span.atomic[g] = 0;
    }
  }
}

}  // namespace kgrpo::simt
