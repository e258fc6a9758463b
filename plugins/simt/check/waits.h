// Follows which warp waits for which in a counted launch: a clock for each warp, and for each word that releases
// others. A poll that finds what the one before it found is no work: the wait ends when the other warp stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "simt/check/access.h"

namespace kgrpo::simt {

class Waits {
 public:
  explicit Waits(const Latencies& latencies) : latencies_(latencies) {}

  // An access to global memory, before it happens. Returns true if it only polls again, and is not to be counted.
  bool Follow(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind);
  void Fence(Warp& warp, const Instruction& in) const;
  // The warps of `mask` have met at a barrier.
  static void Meet(Block& block, uint32_t warps);

  // The cycles of the longest chain of warps that wait for one another. `scale`: the launch's blocks over those that
  // ran. `threads`: as many as run at once.
  double Cycles(double scale, double threads) const;

 private:
  // A word of global memory that warps release one another by.
  struct Word {
    double released = 0;  // when the last store to it is visible
    double updated = 0;   // when the L2 has served the last store or atomic
    double held = 0;      // cycles of successful compare-and-swaps, and of locks, one after the other
    double swaps = 0;     // successful compare-and-swaps
    double unlocks = 0;   // of a lock
    double taken = 0;     // when the last one succeeded
    const Warp* holder = nullptr;
  };
  bool Polls(Warp& warp, const Instruction& in, uint32_t mask, const Access& access);
  void Swap(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, double seen);

  const Latencies latencies_;
  std::unordered_map<uint64_t, Word> words_;
  double last_ = 0;  // the latest clock
};

// Counts an access, if its block is counted, and follows it, if warps may wait for one another.
void CountOrFollow(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind);

}  // namespace kgrpo::simt
