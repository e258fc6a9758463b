// What CUDA leaves open, in checked launches (LaunchConfig::other_choices). Used by load_store.cc.
//
// Of the values that lanes of a warp store to one place by one instruction, one stays: ChooseStores.
//
// A volatile or relaxed load need not see a write with which it has no order: a GPU may give the value before the write
// or the one after it. A loop that polls a flag works with both; a kernel that takes such a value for data does not. So
// a load gets the value before, once: the next load sees the write.
//
// If a call gives wrong outputs, and right ones by the other choices, it has a race (interpreter/interpreted_cases.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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

// Returns the lanes of `mask` whose values stay: of those that store to one place the last one, or the first one.
// `differ(l, k)`: the values of lanes l and k do.
uint32_t ChooseStores(Warp& warp, const Instruction& in, uint32_t mask, const Access& access,
                      const std::function<bool(int, int)>& differ);

}  // namespace kgrpo::simt
