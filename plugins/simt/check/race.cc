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
  grid.compares_launches = grid.compares_launches && grid.events.empty();  // the first event forgets nothing
  grid.events.assign(1, {});
  grid.shadows.clear();
  grid.recent_shadows.fill({});
  for (Block* block : grid.resident) block->shared_shadow.Reset(grid.shared_limit);
}

void ReportRace(Warp& warp, const Instruction& in, int lane, const Access& access, const char* now, AccessCell earlier,
                const char* then) {
  AddFinding(*warp.grid, RaceOf(warp, in.index, static_cast<uint32_t>(warp.id * kLanes + lane), access.space,
                                access.address[lane], access.bytes, now, earlier, then));
}

// Names a load in RacingReads: the event that it noted, the lane, and a word that it read.
uint64_t RacingKey(const AccessEvent& event, uint32_t lane, uint64_t address) {
  uint64_t key = 0;
  for (const uint64_t part : {uint64_t{event.block} << 32 | event.pc, uint64_t{event.clock} << 32 | event.warp,
                              (address & ~uint64_t{3}) << 5 ^ lane}) {
    key = (key ^ part) * 0x9E3779B97F4A7C15ull;
    key ^= key >> 29;
  }
  return key;
}

// The lanes of a load of which an earlier launch has shown that others overwrite what it reads; they become suspects.
uint32_t AddRacingReads(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, uint32_t event,
                        uint32_t elements) {
  const RacingReads* known = warp.grid->config->racing_reads;
  if (known == nullptr || elements == 0) return 0;
  uint32_t racing = 0;
  for (const int l : EachBit(access.distinct & mask)) {
    for (uint32_t from = 0; from < access.bytes; from += 4) {
      const auto found =
          known->reads.find(RacingKey(warp.grid->events[event], static_cast<uint32_t>(l), access.address[l] + from));
      if (found == known->reads.end()) continue;
      const uint32_t each = access.bytes / elements;
      uint32_t which = 0;
      for (uint32_t e = from / each; e < elements && e * each < from + 4; ++e) which |= 1u << e;
      AddSuspect(warp, in, mask, access, l, which,
                 {.address = access.address[l], .bytes = access.bytes, .race = found->second + 1});
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
  const AccessEvent& event = grid.events[read / kLanes];
  const std::vector<uint32_t>& uses = grid.kernel->unset_use_at;
  RacingReads& racing = grid.result->racing_reads;
  if (uses.empty() || uses[event.pc] == 0 || !grid.kernel->unset_uses[uses[event.pc] - 1].loads ||
      event.warp == grid.warps_per_block || racing.reads.size() >= kMost)
    return false;
  const auto [at, added] = racing.reads.try_emplace(RacingKey(event, read % kLanes, address), 0);
  if (!added) return true;
  Finding race = RaceOf(warp, in.index, static_cast<uint32_t>(warp.id * kLanes + lane), access.space,
                        access.address[lane], access.bytes, now, read, "reads");
  race.may_be_unused = true;
  auto& races = racing.races;
  auto same = std::find_if(races.begin(), races.end(), [&](const Finding& one) {
    return one.line == race.line && one.other_line == race.other_line;
  });
  if (same == races.end()) same = races.insert(races.end(), std::move(race));
  at->second = static_cast<uint32_t>(same - races.begin());
  return true;
}

bool IsSharedVolatile(const Instruction& in, const Access& access) {
  return access.space == Space::kShared && (in.flags & kFlagPlainVolatile) != 0;
}

// Returns true if `cell` is a volatile access to shared memory by another lane of `warp`, and the access now is
// volatile too: code that relies on a warp's lanes running in step. Volatile keeps the accesses, not their order among
// lanes.
bool InStep(AccessCell cell, const Warp& warp, const Instruction& in, const Access& access) {
  const AccessEvent& event = warp.grid->events[cell / kLanes];
  return IsSharedVolatile(in, access) && event.warp == warp.id &&
         (warp.grid->kernel->code[event.pc].flags & kFlagPlainVolatile) != 0;
}

// Returns true if a read may see the unordered write `cell`. Flags are often built as a plain write and a volatile
// read, which acquires, so that is allowed.
bool MayBePolling(AccessCell cell, const Warp& warp, const Instruction& in, const Access& access) {
  return (in.flags & kFlagVolatile) != 0 && !InStep(cell, warp, in, access);
}

// Returns true if a release or an acquire there orders accesses of one block only.
bool IsWithinBlock(const Instruction& in, const Access& access) {
  return access.space == Space::kShared || (access.space == Space::kGlobal && (in.flags & kFlagBlockScope) != 0);
}

}  // namespace

void RacingReads::Add(const RacingReads& others) {
  const auto first = static_cast<uint32_t>(races.size());
  races.insert(races.end(), others.races.begin(), others.races.end());
  for (const auto& [key, race] : others.reads) reads.emplace(key, first + race);
}

Finding RaceOf(const Warp& warp, uint32_t pc, uint32_t thread, Space space, uint64_t address, uint32_t bytes,
               const char* now, AccessCell earlier, const char* then, const std::string& why) {
  const Grid& grid = *warp.grid;
  const AccessEvent& event = grid.events[earlier / kLanes];
  const bool copied = event.warp == grid.warps_per_block;
  const uint32_t other_warp = copied ? event.issuer : event.warp;
  const ThreadId other = IdOf(grid, event.block, other_warp * kLanes + earlier % kLanes);
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
  // Through memory: it must have been released after the access, and this warp must have acquired that.
  if (warp.acquire_time == 0) return Order::kUnordered;
  const auto block = warp.grid->released.find(event.block);
  if (block == warp.grid->released.end()) return Order::kUnordered;
  const std::vector<Released>& released = block->second[event.warp];
  const auto first = std::upper_bound(released.begin(), released.end(), event.clock,
                                      [](uint32_t clock, const Released& one) { return clock < one.clock; });
  return first != released.end() && first->time <= warp.acquire_time ? Order::kBefore : Order::kUnordered;
}

uint32_t NoteEvent(Warp& warp, const Instruction& in, AccessKind kind) {
  std::vector<AccessEvent>& events = warp.grid->events;
  AccessEvent event;
  event.block = static_cast<uint32_t>(warp.block->index);
  event.clock = warp.clock;
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

uint32_t NoteArrival(Grid& grid, Block& block, const BulkCopy& copy) {
  if (grid.events.size() >= kMostEvents || grid.events.empty()) Forget(grid);
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
  const size_t engine = warp.grid->warps_per_block;
  barrier.announced.resize(warp.known.size(), 0);
  barrier.announced[engine] = std::max(barrier.announced[engine], warp.block->bulk_clock + 1);
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
  if (found.empty()) found.Reset(allocation->bytes());
  std::copy_backward(grid.recent_shadows.begin(), std::prev(grid.recent_shadows.end()), grid.recent_shadows.end());
  grid.recent_shadows[0] = {allocation, &found};
  return &found;
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
  uint64_t base = 0;
  const bool several = access.allocation == nullptr && access.space == Space::kGlobal;
  RaceShadow* shadow = several ? nullptr : ShadowOf(warp, access, std::countr_zero(mask), base);
  if (!several && shadow == nullptr) return;
  if (!several && NoteLoads(warp, mask, access, event, polled, *shadow, base)) return;
  for (const int lane : EachBit(access.distinct & mask)) {
    if (several) shadow = ShadowOf(warp, access, lane, base);
    if (shadow == nullptr) continue;
    const RaceShadow::Span span = shadow->At(access.address[lane] - base, access.bytes);
    const AccessCell cell = event * kLanes + static_cast<uint32_t>(lane);
    for (uint32_t g = 0; g < span.count; ++g) {
      for (const AccessCell write : {span.write[g], span.atomic[g]}) {
        if (write == 0 || HappenedBefore(write, warp, lane, write == span.write[g] ? writes : atomics) ||
            MayBePolling(write, warp, in, access))
          continue;
        if (elements == 0)
          return ReportRace(warp, in, lane, access, "reads", write,
                            warp.grid->events[write / kLanes].atomic ? "updates" : "writes");
        const uint32_t element = g * elements / span.count;
        uint32_t which = 1u << element;  // a granule may hold several elements
        for (uint32_t e = element + 1; e * span.count < (g + 1) * elements; ++e) which |= 1u << e;
        AddSuspect(warp, in, mask, access, lane, which,
                   {.address = access.address[lane], .bytes = access.bytes, .earlier = write});
        break;
      }
      const AccessCell before = span.read[0][g];
      const bool beside = before != 0 && before / kLanes != event && !HappenedBefore(before, warp, lane, reads) &&
                          reads.order != Order::kSameWarp;
      span.read[beside ? 1 : 0][g] = cell;
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
  Memory memory;
  const RaceShadow::Span span = shadow->At(access.address[lane] - base, access.bytes);
  for (uint32_t g = 0; g < span.count; ++g) {
    const AccessCell write = span.write[g], atomic = span.atomic[g];
    if (changes && !HappenedBefore(write, warp, lane, memory)) {
      return ReportRace(warp, in, lane, access, now, write, "writes");
    }
    if (changes && !HappenedBefore(atomic, warp, lane, memory) && !(concurrent && !InStep(atomic, warp, in, access))) {
      return ReportRace(warp, in, lane, access, now, atomic, "updates");
    }
    for (AccessCell* reads : span.read) {
      AccessCell& read = reads[g];
      if (HappenedBefore(read, warp, lane, memory)) {
        read = 0;
      } else if (changes && !(concurrent && events[read / kLanes].atomic && !InStep(read, warp, in, access))) {
        const uint64_t granule = access.address[lane] + uint64_t{g} * access.bytes / span.count;
        if (!NoteRacingRead(warp, in, lane, access, granule, now, read))
          return ReportRace(warp, in, lane, access, now, read, "reads");
        read = 0;
      }
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

void NoteFence(Warp& warp) {
  const size_t agents = warp.grid->agents, own = static_cast<size_t>(warp.id);
  for (size_t w = 0; w < agents; ++w) warp.known[agents + w] = std::max(warp.known[agents + w], warp.known[w]);
  warp.known[agents + own] = ++warp.clock;
  warp.fenced = true;
}

void NoteProxyFence(Warp& warp) {
  const size_t agents = warp.grid->agents, own = static_cast<size_t>(warp.id);
  for (size_t w = 0; w < agents; ++w) warp.known[2 * agents + w] = std::max(warp.known[2 * agents + w], warp.known[w]);
  warp.known[2 * agents + own] = ++warp.clock;
}

void NoteRelease(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  if (IsWithinBlock(in, access)) {
    if ((in.flags & kFlagRelease) == 0) return;
    const auto own = static_cast<size_t>(warp.id);
    for (const int lane : EachBit(access.distinct & mask)) {
      std::vector<uint32_t>& published = warp.block->published[access.address[lane]];
      published.resize(warp.known.size(), 0);
      for (size_t w = 0; w < published.size(); ++w) published[w] = std::max(published[w], warp.known[w]);
      published[own] = std::max(published[own], warp.clock + 1);
    }
    ++warp.clock;
    return;
  }
  if (access.space != Space::kGlobal) return;
  if ((in.flags & kFlagRelease) != 0) NoteFence(warp);
  if (!warp.fenced) return;
  Grid& grid = *warp.grid;
  const size_t warps = grid.agents;
  const uint64_t now = ++grid.time;
  std::vector<std::vector<Released>>& released = grid.released[warp.block->index];
  released.resize(warps);
  for (size_t w = 0; w < warps; ++w) {
    const uint32_t covered = warp.known[warps + w];
    if (covered > (released[w].empty() ? 0 : released[w].back().clock)) released[w].push_back({covered, now});
  }
  for (const int l : EachBit(access.distinct & mask)) grid.release_times[access.address[l] / 16] = now;
}

void NoteAcquire(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  Grid& grid = *warp.grid;
  if (IsWithinBlock(in, access)) {
    if ((in.flags & kFlagAcquire) == 0 || warp.block->published.empty()) return;
    for (const int lane : EachBit(access.distinct & mask)) {
      const auto found = warp.block->published.find(access.address[lane]);
      if (found == warp.block->published.end()) continue;
      for (size_t w = 0; w < found->second.size(); ++w) {
        if (w != static_cast<size_t>(warp.id)) warp.known[w] = std::max(warp.known[w], found->second[w]);
      }
    }
    return;
  }
  if (access.space != Space::kGlobal || grid.release_times.empty()) return;
  for (const int lane : EachBit(access.distinct & mask)) {
    const auto found = grid.release_times.find(access.address[lane] / 16);
    if (found != grid.release_times.end()) warp.acquire_time = std::max(warp.acquire_time, found->second);
  }
}

}  // namespace kgrpo::simt
