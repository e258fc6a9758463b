// Volatile and relaxed loads that need not see a write yet. Without order between the two, a GPU may give the value
// before the write or the one after it. A loop that polls a flag works with both; a kernel that takes such a value for
// data does not. So in a checked launch (LaunchConfig::other_choices is false) a load gets the value before, once: the
// next load sees the write. If a call then gives wrong outputs and right ones when loads see every write, the load is a
// race (interpreter/interpreted_cases.cc). Used by load_store.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simt/check/access.h"

namespace kgrpo::simt {

// Puts the bytes before unordered writes into memory while it lives, and the newest bytes afterwards.
class HiddenWrites {
 public:
  HiddenWrites(Warp& warp, const Instruction& in, uint32_t mask, const Access& access);
  ~HiddenWrites();
  HiddenWrites(const HiddenWrites&) = delete;
  HiddenWrites& operator=(const HiddenWrites&) = delete;

 private:
  struct Granule {
    std::byte *memory, *before;
    uint32_t bytes;
    std::array<std::byte, 4> newest;
  };
  std::vector<Granule> hidden_;
};

// Keeps the bytes that the lanes will overwrite. To be called before each store and atomic if Grid::hides_writes.
void KeepBytesBefore(Warp& warp, uint32_t mask, const Access& access);

}  // namespace kgrpo::simt
