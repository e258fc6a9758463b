#include "simt/check/earlier_launches.h"

#include <bit>
#include <string>
#include <utility>

#include "simt/check/access.h"
#include "simt/check/race_order.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

// True if the lane comes after a wait of a thread of its block: its own, or one before a barrier that both reached.
bool HasWaited(Warp& warp, int lane) {
  if (((warp.waited >> lane) & 1u) != 0) return true;
  Memory memory;
  for (const AccessCell wait : warp.block->grid_waits) {
    if (!HappenedBefore(wait, warp, lane, memory)) continue;
    warp.waited |= 1u << lane;
    return true;
  }
  return false;
}

void ReportEarly(Warp& warp, const Instruction& in, int lane, AccessKind kind, const Access& access,
                 const EarlierLaunch& earlier, AccessCell cell, bool writes) {
  Grid before;  // as far as naming its threads takes
  before.config = &earlier.config;
  before.kernel = earlier.kernel;
  before.program = earlier.program;
  const AccessEvent& event = earlier.events[EventNumber(cell)];
  const ThreadId other = IdOf(before, event.block, uint32_t{event.warp} * kLanes + LaneOf(cell));
  const int line = LineAt(before, event.pc);
  const Finding then = MakeFinding(before, event.pc, other, FindingCode::kRace, access.address[lane], "", "");
  std::string where = warp.grid->memory->Describe(access.address[lane]);
  if (where.starts_with("at ")) where = where.substr(3);
  Finding race = MakeFinding(
      *warp.grid, in.index, IdOf(warp, lane), FindingCode::kRace, access.address[lane], where,
      std::string(kind == AccessKind::kLoad ? "reads " : "writes ") + where + " before it waits for kernel '" +
          then.kernel + "', of which " + NameThread(other) + (writes ? " writes it" : " reads it") +
          (line > 0 ? " at line " + std::to_string(line) : "") +
          " (a race between launches: cudaGridDependencySynchronize(), griddepcontrol.wait, must come first)");
  race.has_other = true;
  race.other = other;
  race.other_line = line;
  AddFinding(*warp.grid, std::move(race));
}

}  // namespace

std::shared_ptr<EarlierLaunch> TakeAccesses(Grid& grid) {
  auto launch = std::make_shared<EarlierLaunch>();
  launch->program = grid.program;
  launch->kernel = grid.kernel;
  launch->config.grid = grid.config->grid;
  launch->config.block = grid.config->block;
  launch->events = std::move(grid.events);
  for (auto& [allocation, shadow] : grid.shadows) launch->shadows.emplace(allocation->address(), std::move(shadow));
  return launch;
}

void LaunchesInFlight::Begin(bool overlaps, LaunchConfig* config) {
  if (!overlaps) launches_.clear();
  config->in_flight = launches_.empty() ? nullptr : &launches_;
}

void LaunchesInFlight::End(LaunchResult* result) {
  // One that lets the next begin before it has itself waited leaves those before it running, too.
  if (result->accesses == nullptr || !result->let_next_begin_early) launches_.clear();
  if (launches_.size() == kMost) launches_.erase(launches_.begin());
  if (result->accesses != nullptr) launches_.push_back(std::move(result->accesses));
}

void CheckEarlierLaunches(Warp& warp, const Instruction& in, uint32_t mask, AccessKind kind, const Access& access) {
  Grid& grid = *warp.grid;
  if (!grid.checked || !grid.compares_launches) return;
  for (const int lane : EachBit(mask & ~warp.waited)) {
    if (HasWaited(warp, lane)) continue;
    const Allocation* allocation =
        access.allocation != nullptr ? access.allocation : FindAllocation(grid, access.address[lane]);
    for (const std::shared_ptr<EarlierLaunch>& earlier : *grid.config->in_flight) {
      const auto found = earlier->shadows.find(allocation->address());
      if (found == earlier->shadows.end()) continue;
      const RaceShadow::Span span = found->second.At(access.address[lane] - allocation->address(), access.bytes);
      for (uint32_t g = 0; g < span.count; ++g) {
        const AccessCell write = span.write[g] != 0 ? span.write[g] : span.atomic[g];
        const AccessCell read = kind == AccessKind::kLoad ? 0 : span.Reader(0)[g];
        if (write == 0 && read == 0) continue;
        return ReportEarly(warp, in, lane, kind, access, *earlier, write != 0 ? write : read, write != 0);
      }
    }
  }
}

void LetNextLaunchBegin(Warp& warp, const Instruction&, uint32_t mask) {
  Grid& grid = *warp.grid;
  grid.lets_next_begin = true;
  for (uint32_t m = mask; grid.checked && m != 0; m &= m - 1)
    grid.lets_next_begin_early |= !HasWaited(warp, std::countr_zero(m));
}

void WaitForEarlierLaunches(Warp& warp, const Instruction& in, uint32_t mask) {
  if (!warp.grid->checked || (mask & ~warp.waited) == 0) return;
  warp.waited |= mask;
  warp.block->grid_waits.push_back(NoteEvent(warp, in, AccessKind::kLoad) * kLanes +
                                   static_cast<uint32_t>(std::countr_zero(mask)));
}

}  // namespace kgrpo::simt
