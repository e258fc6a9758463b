// Lets virtual registers share storage. PTX names a new register for nearly every value; storing each apart would
// spread a warp's registers over more memory than a core's caches hold.
//
// A register's interval runs from its first to its last mention in program order. A loop stretches it: what is alive
// into or around a backward branch lives for the whole loop. That is conservative, and needs no control flow graph.
#include <algorithm>

#include "evaluator_sim/simt/lowering.h"

namespace kgrpo::simt {
namespace {

constexpr uint32_t kNarrowSlot = 4 * kLanes, kWideSlot = 8 * kLanes;

void StretchOverLoops(std::vector<RegisterUse>& uses, std::vector<std::pair<int32_t, int32_t>> loops) {
  std::sort(loops.begin(), loops.end(),
            [](const auto& a, const auto& b) { return a.first - a.second < b.first - b.second; });
  bool changed = true;
  while (changed) {
    changed = false;
    for (const auto& [from, to] : loops) {
      for (RegisterUse& use : uses) {
        if (use.first < 0 || use.first > from || use.last < to) continue;  // apart
        if (use.first <= to && use.last >= from) continue;                 // already covers it
        const bool inside = use.first >= to && use.last <= from;
        if (inside && use.starts_with_definition) continue;  // made anew in each iteration
        use.first = std::min(use.first, to);
        use.last = std::max(use.last, from);
        changed = true;
      }
    }
  }
}

}  // namespace

uint32_t AssignSlots(std::vector<RegisterUse>& uses, const std::vector<std::pair<int32_t, int32_t>>& backward,
                     std::vector<Operand>& offsets, uint32_t& most_alive) {
  StretchOverLoops(uses, backward);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < uses.size(); ++i) {
    if (uses[i].first >= 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return uses[a].first != uses[b].first ? uses[a].first < uses[b].first : a < b;
  });
  offsets.assign(uses.size(), kNoOperand);
  // Predicates first, each its own word: they are small.
  uint32_t predicates = 0;
  for (const uint32_t i : order) {
    if (uses[i].type == Type::kPred) offsets[i] = static_cast<Operand>(4 * predicates++);
  }
  const uint32_t base = (4 * predicates + kWideSlot - 1) / kWideSlot * kWideSlot;
  uint32_t end = base;
  // Ended intervals return their slots: (last mention, offset), by width.
  struct Busy {
    int32_t last;
    uint32_t offset;
    bool wide;
    bool operator<(const Busy& other) const { return last > other.last; }
  };
  std::vector<Busy> busy;
  std::vector<uint32_t> free_narrow, free_wide;
  uint32_t alive = 0;
  most_alive = 0;
  for (const uint32_t i : order) {
    if (uses[i].type == Type::kPred) continue;
    // Strictly before: an instruction's sources and results never share, except as the same register.
    while (!busy.empty() && busy.front().last < uses[i].first) {
      std::pop_heap(busy.begin(), busy.end());
      (busy.back().wide ? free_wide : free_narrow).push_back(busy.back().offset);
      alive -= busy.back().wide ? 2 : 1;
      busy.pop_back();
    }
    const bool wide = TypeBytes(uses[i].type) == 8;
    std::vector<uint32_t>& pool = wide ? free_wide : free_narrow;
    uint32_t offset;
    if (!pool.empty()) {
      offset = pool.back();
      pool.pop_back();
    } else {
      offset = end;
      end += wide ? kWideSlot : kNarrowSlot;
    }
    offsets[i] = static_cast<Operand>(offset);
    busy.push_back({uses[i].last, offset, wide});
    std::push_heap(busy.begin(), busy.end());
    alive += wide ? 2 : 1;
    most_alive = std::max(most_alive, alive);
  }
  return (end + 63) / 64 * 64;
}

}  // namespace kgrpo::simt
