// Lets virtual registers share storage. PTX names a new register for nearly every value; storing each apart would
// spread a warp's registers over more memory than a core's caches hold.
//
// A register's interval is the stretch of code over which it may be alive, by the usual backward data flow over basic
// blocks; a scan over the intervals hands out the slots. Lanes take branches on their own, but each lane follows the
// flow graph, and an instruction writes only the lanes that execute it, so what holds for a thread holds for the warp.
#include <algorithm>

#include "simt/lower/lowering.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

constexpr uint32_t kNarrowSlot = 4 * kLanes, kWideSlot = 8 * kLanes;

struct LiveRange {
  int32_t first = -1, last = -1;  // -1: never mentioned
  void Cover(int32_t from, int32_t to) {
    first = first < 0 ? from : std::min(first, from);
    last = std::max(last, to);
  }
};

// A set of registers.
class RegisterSet {
 public:
  explicit RegisterSet(size_t registers) : words_((registers + 63) / 64, 0) {}
  void Insert(uint32_t reg) { words_[reg / 64] |= uint64_t{1} << (reg % 64); }
  void Remove(uint32_t reg) { words_[reg / 64] &= ~(uint64_t{1} << (reg % 64)); }
  // Adds the elements of `other`; returns true if any was new.
  bool Add(const RegisterSet& other) {
    uint64_t fresh = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      fresh |= other.words_[i] & ~words_[i];
      words_[i] |= other.words_[i];
    }
    return fresh != 0;
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1)
        visit(static_cast<uint32_t>(64 * i) + static_cast<uint32_t>(__builtin_ctzll(word)));
    }
  }

 private:
  std::vector<uint64_t> words_;
};

// Also finds the registers that are read on some path before they are written.
std::vector<LiveRange> LiveRangesOf(const Kernel& kernel, size_t registers, std::vector<uint32_t>& unset) {
  const auto blocks = static_cast<uint32_t>(kernel.blocks.size());
  std::vector<uint32_t> block_at(kernel.code.size() + 1, blocks);
  for (uint32_t b = 0; b < blocks; ++b) block_at[kernel.blocks[b].first] = b;
  std::vector<std::vector<uint32_t>> successors(blocks);
  for (uint32_t b = 0; b < blocks; ++b) successors[b] = SuccessorsOf(kernel, b, block_at);
  std::vector<RegisterSet> in(blocks, RegisterSet(registers)), out(blocks, RegisterSet(registers));
  std::vector<LiveRange> intervals(registers);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = blocks; b-- > 0;) {
      for (const uint32_t next : successors[b]) out[b].Add(in[next]);
      RegisterSet alive = out[b];
      for (uint32_t pc = kernel.blocks[b].last; pc-- > kernel.blocks[b].first;) {
        const bool always = kernel.code[pc].predicate < 0;  // a predicated write keeps the old value in some lanes
        for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
          if ((kernel.mentions[m] & 1u) != 0 && always) alive.Remove(kernel.mentions[m] / 2);
        }
        for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
          if ((kernel.mentions[m] & 1u) == 0) alive.Insert(kernel.mentions[m] / 2);
        }
      }
      changed |= in[b].Add(alive);
    }
  }
  for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) {
    for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
      intervals[kernel.mentions[m] / 2].Cover(static_cast<int32_t>(pc), static_cast<int32_t>(pc));
    }
  }
  for (uint32_t b = 0; b < blocks; ++b) {
    const auto first = static_cast<int32_t>(kernel.blocks[b].first),
               last = static_cast<int32_t>(kernel.blocks[b].last) - 1;
    in[b].ForEach([&](uint32_t reg) { intervals[reg].Cover(first, first); });
    out[b].ForEach([&](uint32_t reg) { intervals[reg].Cover(last, last); });
  }
  if (blocks != 0) in[0].ForEach([&](uint32_t reg) { unset.push_back(reg); });
  return intervals;
}

}  // namespace

std::vector<uint32_t> SuccessorsOf(const Kernel& kernel, uint32_t index, const std::vector<uint32_t>& block_at) {
  const BasicBlock& block = kernel.blocks[index];
  const Instruction& last = kernel.code[block.last - 1];
  const bool always = last.predicate < 0;
  std::vector<uint32_t> next;
  const bool falls_through = !(always && (last.run == &Branch || last.run == &BranchIndexed || last.run == &Exit ||
                                          last.run == &ReturnFromSubroutine));
  if (falls_through && block.last < kernel.code.size()) next.push_back(block_at[block.last]);
  if (last.run == &Branch) next.push_back(block_at[last.extra]);
  if (last.run == &BranchIndexed) {
    for (int64_t i = 0; i < last.offset; ++i)
      next.push_back(block_at[kernel.branch_targets[last.extra + static_cast<size_t>(i)]]);
  }
  return next;
}

uint32_t AssignSlots(const Kernel& kernel, const std::vector<Type>& types, const std::vector<uint32_t>& whole,
                     std::vector<Operand>& offsets, uint32_t& most_alive, std::vector<uint32_t>& unset) {
  std::vector<LiveRange> uses = LiveRangesOf(kernel, types.size(), unset);
  for (const uint32_t reg : whole) uses[reg].Cover(0, static_cast<int32_t>(kernel.code.size()));
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
    if (types[i] == Type::kPred) offsets[i] = static_cast<Operand>(4 * predicates++);
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
    if (types[i] == Type::kPred) continue;
    // Strictly before: an instruction's sources and results never share, except as the same register.
    while (!busy.empty() && busy.front().last < uses[i].first) {
      std::pop_heap(busy.begin(), busy.end());
      (busy.back().wide ? free_wide : free_narrow).push_back(busy.back().offset);
      alive -= busy.back().wide ? 2 : 1;
      busy.pop_back();
    }
    const bool wide = TypeBytes(types[i]) == 8;
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
