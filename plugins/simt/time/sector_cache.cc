#include "simt/time/sector_cache.h"

namespace kgrpo::simt {

// A separate file prevents inlining, with which GCC makes it half as fast.
uint32_t SectorCache::Read(uint64_t line, uint32_t wanted) {
  Entry* set = &entries_[(line ^ (line >> 9)) % sets_ * kWays];
  Entry* victim = set;
  ++clock_;
  for (uint32_t w = 0; w < kWays; ++w) {
    if (set[w].line == line) {
      const uint32_t missing = wanted & ~set[w].sectors;
      set[w].sectors |= wanted;
      set[w].used = clock_;
      return missing;
    }
    if (set[w].used < victim->used) victim = &set[w];
  }
  *victim = {line, clock_, wanted};
  return wanted;
}

}  // namespace kgrpo::simt
