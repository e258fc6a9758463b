#include "simt/time/bank_conflicts.h"

#include <algorithm>
#include <bit>

namespace kgrpo::simt {

uint32_t BankCycles(const uint64_t* address, uint32_t mask, uint32_t bytes) {
  uint32_t words[32][kLanes];
  uint8_t counts[32] = {};
  uint32_t most = 0;
  for (const int lane : EachBit(mask)) {
    const auto first = static_cast<uint32_t>(address[lane] / 4);
    const auto last = static_cast<uint32_t>((address[lane] + bytes - 1) / 4);
    for (uint32_t word = first; word <= last; ++word) {
      const uint32_t bank = word % 32;
      uint32_t i = 0;
      while (i < counts[bank] && words[bank][i] != word) ++i;
      if (i < counts[bank]) continue;
      words[bank][counts[bank]++] = word;
      most = std::max<uint32_t>(most, counts[bank]);
    }
  }
  return most;
}

namespace {

// Accesses of 8 and 16 bytes are served half a warp or a quarter at a time. Parts are served together if that takes no
// more cycles than the longest part alone.
uint32_t CountWavefronts(const uint64_t* address, uint32_t mask, uint32_t bytes) {
  const uint32_t parts = std::max(1u, bytes / 4), width = kLanes / parts;
  if (parts == 1) return BankCycles(address, mask, bytes);
  uint32_t total = 0, group = 0, group_cycles = 0;
  for (uint32_t p = 0; p < parts; ++p) {
    const uint32_t part = mask & (((1u << width) - 1) << (p * width));
    if (part == 0) continue;
    const uint32_t alone = BankCycles(address, part, bytes);
    const uint32_t together = group == 0 ? 0 : BankCycles(address, group | part, bytes);
    if (group != 0 && together <= std::max(group_cycles, alone)) {
      group |= part;
      group_cycles = together;
    } else {
      total += group_cycles;
      group = part;
      group_cycles = alone;
    }
  }
  return total + group_cycles;
}

}  // namespace

uint32_t ReturnCycles(const uint64_t* address, uint32_t mask, uint32_t bytes) {
  const uint32_t parts = std::max(1u, bytes / 4);
  bool pairs = parts > 1, next_but_one = parts > 1;
  for (uint32_t m = mask; m != 0 && (pairs || next_but_one); m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    pairs &= ((mask >> (lane ^ 1)) & 1u) == 0 || address[lane ^ 1] == address[lane];
    next_but_one &= ((mask >> (lane ^ 2)) & 1u) == 0 || address[lane ^ 2] == address[lane];
  }
  return pairs || next_but_one ? parts / 2 : parts;
}

uint32_t BankConflicts::Wavefronts(uint32_t pc, const uint64_t* address, uint32_t mask, uint32_t bytes, bool load) {
  if (kept_at_[pc] == 0) {
    kept_.emplace_back();
    kept_at_[pc] = static_cast<uint32_t>(kept_.size());
  }
  Kept& kept = kept_[kept_at_[pc] - 1];
  const uint64_t base = address[std::countr_zero(mask)] & ~uint64_t{3};
  bool same = kept.mask == mask && kept.bytes == bytes;
  for (const int lane : EachBit(mask)) {
    const auto offset = static_cast<uint32_t>(address[lane] - base);
    same &= kept.offset[static_cast<size_t>(lane)] == offset;
    kept.offset[static_cast<size_t>(lane)] = offset;
  }
  if (!same) {
    kept.mask = mask;
    kept.bytes = bytes;
    kept.wavefronts = CountWavefronts(address, mask, bytes);
    if (load) kept.wavefronts = std::max(kept.wavefronts, ReturnCycles(address, mask, bytes));
  }
  return kept.wavefronts;
}

}  // namespace kgrpo::simt
