// The L1 cache as counted launches see it. Used by counter_memory.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kgrpo::simt {

// A set-associative cache of 128-byte lines, filled by 32-byte sectors.
class SectorCache {
 public:
  static constexpr uint64_t kSector = 32, kLine = 128;

  explicit SectorCache(uint32_t bytes) : sets_(std::max(1u, bytes / 128 / kWays)), entries_(sets_ * kWays) {}
  void Clear() { std::fill(entries_.begin(), entries_.end(), Entry{}); }
  // Reads sectors `wanted` (4 bits) of a line; returns those it did not hold and holds them now.
  uint32_t Read(uint64_t line, uint32_t wanted);

 private:
  static constexpr uint32_t kWays = 4;
  struct Entry {
    uint64_t line = UINT64_MAX;
    uint32_t used = 0;
    uint32_t sectors = 0;
  };
  uint32_t sets_;
  std::vector<Entry> entries_;
  uint32_t clock_ = 0;
};

}  // namespace kgrpo::simt
