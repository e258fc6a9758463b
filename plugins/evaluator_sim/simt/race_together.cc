// Race detection for all lanes of a warp's access at once, where what was noted of the memory before is simple: mostly
// nothing, or one instruction's accesses. What is not goes lane by lane in race.cc.
#include <algorithm>
#include <bit>

#include "evaluator_sim/simt/race_order.h"
#include "evaluator_sim/simt/vector_clones.h"

namespace kgrpo::simt {
namespace {

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
bool NoteRowOfLoads(const Warp& warp, uint32_t event, bool polled, const RaceShadow::Span& row) {
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

// ---- the cells of lanes anywhere ----

constexpr uint32_t kMostGranules = 16;  // of a lane

// The granules that the lanes of a warp access, one lane's after the other's.
struct Scattered {
  uint32_t count = 0;
  AccessCell lane[kLanes * kMostGranules];
  uint64_t at[kLanes * kMostGranules];  // from the shadow's first granule

  // How their cells in `cells` differ from those of one instruction: see DifferencesOf.
  uint32_t Differences(const AccessCell* cells) const {
    const AccessCell first = cells[at[0]] / kLanes * kLanes;
    uint32_t differences = 0;
    for (uint32_t i = 0; i < count; ++i) differences |= cells[at[i]] ^ (first + lane[i]);
    return differences;
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

// NoteRowOfLoads for lanes anywhere.
bool NoteScatteredLoads(const Warp& warp, uint32_t event, bool polled, const Scattered& scattered,
                        const RaceShadow::Span& all) {
  if (!polled) {
    const uint32_t differences = scattered.Differences(all.write);
    if (differences >= kLanes || !RowHappenedBefore(all.write + scattered.at[0], differences, warp)) return false;
  }
  Memory memory;
  for (uint32_t i = 0; i < scattered.count; ++i) {
    const AccessCell before = all.read[0][scattered.at[i]];
    const auto lane = static_cast<int>(scattered.lane[i]);
    const bool beside = before != 0 && before / kLanes != event && !HappenedBefore(before, warp, lane, memory) &&
                        memory.order != Order::kSameWarp;
    all.read[beside ? 1 : 0][scattered.at[i]] = event * kLanes + scattered.lane[i];
  }
  return true;
}

// NoteStores for lanes anywhere.
bool NoteScatteredStores(const Warp& warp, uint32_t event, const Scattered& scattered, const RaceShadow::Span& all) {
  for (const AccessCell* cells : {all.write, all.read[0], all.read[1]}) {
    const uint32_t differences = scattered.Differences(cells);
    if (differences >= kLanes || !RowHappenedBefore(cells + scattered.at[0], differences, warp)) return false;
  }
  // Two lanes that write to one place are looked at in turn.
  AccessCell before[kLanes * kMostGranules];
  for (uint32_t i = 0; i < scattered.count; ++i) before[i] = all.write[scattered.at[i]];
  scattered.Fill(all.write, event);
  uint32_t differences = 0;
  for (uint32_t i = 0; i < scattered.count; ++i)
    differences |= all.write[scattered.at[i]] ^ (event * kLanes + scattered.lane[i]);
  if (differences != 0) {
    for (uint32_t i = 0; i < scattered.count; ++i) all.write[scattered.at[i]] = before[i];
    return false;
  }
  for (uint32_t i = 0; i < scattered.count; ++i) all.read[0][scattered.at[i]] = all.read[1][scattered.at[i]] = 0;
  return true;
}

}  // namespace

bool NoteLoads(const Warp& warp, uint32_t mask, const Access& access, uint32_t event, bool polled, RaceShadow& shadow,
               uint64_t base) {
  if (access.pattern == Pattern::kContiguous && mask == kAllLanes) {
    const uint64_t offset = access.address[0] - base;
    return NoteRowOfLoads(warp, event, polled, shadow.AtRow(offset, access.bytes * kLanes, access.bytes));
  }
  Scattered scattered;
  RaceShadow::Span all;
  return Scatter(shadow, base, access.distinct & mask, access, scattered, all) &&
         NoteScatteredLoads(warp, event, polled, scattered, all);
}

bool NoteStores(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  if (access.pattern == Pattern::kUniform || (access.space == Space::kGlobal && access.allocation == nullptr))
    return false;
  uint64_t base;
  const uint32_t event = NoteEvent(warp, in, AccessKind::kStore);
  RaceShadow* shadow = ShadowOf(warp, access, std::countr_zero(mask), base);
  if (shadow == nullptr) return false;
  if (access.pattern != Pattern::kContiguous || mask != kAllLanes) {
    Scattered scattered;
    RaceShadow::Span all;
    return Scatter(*shadow, base, mask, access, scattered, all) && NoteScatteredStores(warp, event, scattered, all);
  }
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

}  // namespace kgrpo::simt
