// Race detection for all lanes of a warp's access at once. Fastest if the earlier accesses are simple: none, or those
// of one instruction. If there may be a race, race.cc checks lane by lane.
#include <algorithm>
#include <bit>

#include "simt/check/race_order.h"
#include "simt/state/vector_clones.h"

namespace kgrpo::simt {
namespace {

// ---- rows: the cells of a whole warp's access, `1 << shift` a lane ----

// Compares the cells with those of the instruction that the first one names. 0: equal. Less than kLanes: other lanes of
// that instruction, or there are no accesses at all. Else: other instructions.
KGRPO_VECTOR_CLONES uint32_t DifferencesOf(const AccessCell* cells, uint32_t count, uint32_t shift) {
  const AccessCell first = cells[0] / kLanes * kLanes;  // with kSeveralLanes, if that is set
  uint32_t differences = 0;
  for (uint32_t i = 0; i < count; ++i) differences |= cells[i] ^ (first + (i >> shift));
  return differences;
}

KGRPO_VECTOR_CLONES void FillRow(AccessCell* cells, uint32_t count, uint32_t shift, uint32_t event) {
  for (uint32_t i = 0; i < count; ++i) cells[i] = event * kLanes + (i >> shift);
}

KGRPO_VECTOR_CLONES bool AnyCell(const AccessCell* cells, uint32_t count) {
  AccessCell any = 0;
  for (uint32_t i = 0; i < count; ++i) any |= cells[i];
  return any != 0;
}

// Returns true if every access of a row, all by one instruction, happened before the warp's current access.
bool RowHappenedBefore(const AccessCell* cells, uint32_t differences, const Warp& warp) {
  const uint32_t event = EventNumber(cells[0]);
  if (event == 0) return true;
  const Order order = OrderOf(warp.grid->events[event], warp);
  const bool own_lanes = differences == 0 && (cells[0] & kSeveralLanes) == 0;
  if (order != Order::kSameWarp || own_lanes) return order != Order::kUnordered;
  return AllLanesKnow(warp, warp.grid->events[event].clock);
}

// The same for several instructions: cell i is at `at(i)` and is accessed now by lane `lane(i)`.
template <typename At, typename Lane>
bool EachHappenedBefore(const AccessCell* cells, uint32_t count, const Warp& warp, At at, Lane lane) {
  Memory memory;
  for (uint32_t i = 0; i < count; ++i) {
    if (!HappenedBefore(cells[at(i)], warp, static_cast<int>(lane(i)), memory)) return false;
  }
  return true;
}

uint32_t ShiftOf(const RaceShadow::Span& row) { return static_cast<uint32_t>(std::countr_zero(row.count / kLanes)); }

bool RowInOrder(const AccessCell* cells, uint32_t count, uint32_t shift, const Warp& warp) {
  const uint32_t differences = DifferencesOf(cells, count, shift);
  if (differences < kLanes) return RowHappenedBefore(cells, differences, warp);
  return EachHappenedBefore(
      cells, count, warp, [](uint32_t i) { return i; }, [=](uint32_t i) { return i >> shift; });
}

// Returns true if in_order(reader) is, for each reader whose latest read may be unordered with the warp's access.
template <typename InOrder>
bool ReadsInOrder(const Warp& warp, bool by_warp, const RaceShadow& shadow, InOrder in_order) {
  for (uint32_t reader = 0; reader < shadow.readers(); ++reader) {
    if (by_warp && NoReadIsUnordered(shadow, reader, warp)) continue;
    if (!in_order(reader)) return false;
  }
  return true;
}

// Records the loads of a whole warp's row. Returns false if there may be a race. `atomics`: there may be atomic writes.
bool NoteRowOfLoads(Warp& warp, uint32_t event, bool polled, bool by_warp, RaceShadow& shadow,
                    const RaceShadow::Span& row) {
  const uint32_t shift = ShiftOf(row);
  if (!polled && !RowInOrder(row.write, row.count, shift, warp)) return false;
  if (!polled && shadow.atomics() && !RowInOrder(row.atomic, row.count, shift, warp)) return false;
  // The usual cases: in place of reads that happened before, or in the next cell of reads by one other instruction.
  for (uint32_t reader = by_warp ? static_cast<uint32_t>(warp.id) : 0;; ++reader) {
    AccessCell* cells = row.Reader(reader);
    const uint32_t differences = DifferencesOf(cells, row.count, shift);
    if (differences >= kLanes) break;
    if (RowHappenedBefore(cells, differences, warp)) {
      FillRow(cells, row.count, shift, event);
      return true;
    }
    if (by_warp || OrderOf(warp.grid->events[EventNumber(cells[0])], warp) == Order::kSameWarp) break;
    if (reader + 1 == RaceShadow::kGlobalReaders) {
      for (uint32_t i = 0; i < row.count; ++i) shadow.Drop(&row.dropped[i], cells[i]);
      FillRow(cells, row.count, shift, event);
      return true;
    }
  }
  Memory memory;
  for (uint32_t i = 0; i < row.count; ++i)
    NoteRead(warp, shadow, row, i, event * kLanes + (i >> shift), by_warp, memory);
  return true;
}

// ---- the cells of lanes at arbitrary addresses ----

constexpr uint32_t kMostGranules = 16;  // per lane

// The granules that the lanes of a warp access, one lane's after the other's.
struct Scattered {
  uint32_t count = 0;
  AccessCell lane[kLanes * kMostGranules];
  uint64_t at[kLanes * kMostGranules];  // from the shadow's first granule

  // DifferencesOf for these granules' cells in `cells`.
  uint32_t Differences(const AccessCell* cells) const {
    const AccessCell first = cells[at[0]] / kLanes * kLanes;
    uint32_t differences = 0;
    for (uint32_t i = 0; i < count; ++i) differences |= cells[at[i]] ^ (first + lane[i]);
    return differences;
  }
  bool InOrder(const AccessCell* cells, const Warp& warp) const {
    const uint32_t differences = Differences(cells);
    if (differences < kLanes) return RowHappenedBefore(cells + at[0], differences, warp);
    return EachHappenedBefore(
        cells, count, warp, [this](uint32_t i) { return at[i]; }, [this](uint32_t i) { return lane[i]; });
  }
  bool Any(const AccessCell* cells) const {
    AccessCell any = 0;
    for (uint32_t i = 0; i < count; ++i) any |= cells[at[i]];
    return any != 0;
  }
  void Fill(AccessCell* cells, uint32_t event) const {
    for (uint32_t i = 0; i < count; ++i) cells[at[i]] = event * kLanes + lane[i];
  }
};

// False where a lane has too many granules.
bool Scatter(RaceShadow& shadow, uint64_t base, uint32_t lanes, const Access& access, Scattered& scattered,
             RaceShadow::Span& all) {
  const uint32_t shift = shadow.ShiftFor(access.bytes);
  const uint32_t each = access.bytes >> shift;
  if (each > kMostGranules) return false;
  uint32_t count = 0;
  for (uint32_t m = lanes; m != 0; m &= m - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(m));
    const uint64_t first = (access.address[l] - base) >> shift;
    for (uint32_t g = 0; g < each; ++g, ++count) {
      scattered.lane[count] = l;
      scattered.at[count] = first + g;
    }
  }
  scattered.count = count;
  all = shadow.At(0, access.bytes);
  return true;
}

// NoteRowOfLoads for lanes at arbitrary addresses.
bool NoteScatteredLoads(Warp& warp, bool polled, bool by_warp, RaceShadow& shadow, const Scattered& scattered,
                        uint32_t event, uint32_t shared_lanes, const RaceShadow::Span& all) {
  if (!polled && !scattered.InOrder(all.write, warp)) return false;
  if (!polled && shadow.atomics() && !scattered.InOrder(all.atomic, warp)) return false;
  Memory memory;
  for (uint32_t i = 0; i < scattered.count; ++i) {
    const AccessCell several = ((shared_lanes >> scattered.lane[i]) & 1u) != 0 ? kSeveralLanes : 0;
    NoteRead(warp, shadow, all, static_cast<uint32_t>(scattered.at[i]), event * kLanes + scattered.lane[i] + several,
             by_warp, memory);
  }
  return true;
}

// NoteStores for lanes at arbitrary addresses.
bool NoteScatteredStores(const Warp& warp, uint32_t event, bool by_warp, const RaceShadow& shadow,
                         const Scattered& scattered, const RaceShadow::Span& all) {
  const bool atomics = shadow.atomics();
  if (!scattered.InOrder(all.write, warp)) return false;
  if (atomics && !scattered.InOrder(all.atomic, warp)) return false;
  if (!ReadsInOrder(warp, by_warp, shadow,
                    [&](uint32_t reader) { return scattered.InOrder(all.Reader(reader), warp); }))
    return false;
  if (shadow.drops() && scattered.Any(all.dropped)) return false;
  const bool concurrent = warp.grid->events[event].atomic;
  AccessCell* target = concurrent ? all.atomic : all.write;
  // Two lanes that write to one place are looked at in turn.
  AccessCell before[kLanes * kMostGranules];
  for (uint32_t i = 0; i < scattered.count; ++i) before[i] = target[scattered.at[i]];
  scattered.Fill(target, event);
  uint32_t differences = 0;
  for (uint32_t i = 0; i < scattered.count; ++i)
    differences |= target[scattered.at[i]] ^ (event * kLanes + scattered.lane[i]);
  if (differences != 0) {
    for (uint32_t i = 0; i < scattered.count; ++i) target[scattered.at[i]] = before[i];
    return false;
  }
  if (atomics && !concurrent) {
    for (uint32_t i = 0; i < scattered.count; ++i) all.atomic[scattered.at[i]] = 0;
  }
  return true;
}

}  // namespace

bool NoteLoads(Warp& warp, uint32_t mask, const Access& access, uint32_t event, bool polled, RaceShadow& shadow,
               uint64_t base) {
  const bool by_warp = HasCellByWarp(access);
  if (by_warp) shadow.ExpectReads(static_cast<uint32_t>(warp.id), event);
  if (access.pattern == Pattern::kContiguous && mask == kAllLanes) {
    const uint64_t offset = access.address[0] - base;
    const RaceShadow::Span row = shadow.AtRow(offset, access.bytes * kLanes, access.bytes);
    return NoteRowOfLoads(warp, event, polled, by_warp, shadow, row);
  }
  Scattered scattered;
  RaceShadow::Span all;
  return Scatter(shadow, base, access.distinct & mask, access, scattered, all) &&
         NoteScatteredLoads(warp, polled, by_warp, shadow, scattered, event, SharedLanes(access, mask), all);
}

bool NoteStores(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  if (access.pattern == Pattern::kUniform || (access.space == Space::kGlobal && access.allocation == nullptr))
    return false;
  if (TouchesCopies(warp, mask, access, true)) return false;
  uint64_t base;
  const uint32_t event = NoteEvent(warp, in, AccessKind::kStore);
  RaceShadow* shadow = ShadowOf(warp, access, std::countr_zero(mask), base);
  if (shadow == nullptr) return false;
  const bool concurrent = warp.grid->events[event].atomic;
  if (concurrent) shadow->ExpectAtomics();
  if (access.pattern != Pattern::kContiguous || mask != kAllLanes) {
    Scattered scattered;
    RaceShadow::Span all;
    return Scatter(*shadow, base, mask, access, scattered, all) &&
           NoteScatteredStores(warp, event, HasCellByWarp(access), *shadow, scattered, all);
  }
  const RaceShadow::Span row = shadow->AtRow(access.address[0] - base, access.bytes * kLanes, access.bytes);
  const uint32_t shift = ShiftOf(row);
  if (!RowInOrder(row.write, row.count, shift, warp)) return false;
  if (shadow->atomics() && !RowInOrder(row.atomic, row.count, shift, warp)) return false;
  if (!ReadsInOrder(warp, HasCellByWarp(access), *shadow,
                    [&](uint32_t reader) { return RowInOrder(row.Reader(reader), row.count, shift, warp); }))
    return false;
  if (shadow->drops() && AnyCell(row.dropped, row.count)) return false;
  if (shadow->atomics() && !concurrent) std::fill_n(row.atomic, row.count, 0);
  FillRow(concurrent ? row.atomic : row.write, row.count, shift, event);
  return true;
}

}  // namespace kgrpo::simt
