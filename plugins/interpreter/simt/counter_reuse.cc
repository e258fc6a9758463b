// Counts how soon a block returns to memory that the L1 has lost, which decides if the L2 still holds it, and how far
// stores fill the sectors that they touch. Part of the counter.
#include <algorithm>
#include <bit>

#include "interpreter/simt/counter.h"

namespace kgrpo::simt {

// `sectors` (4 bits) of a line are fetched from the L2 or written to it. The L2 fetches 64 bytes from DRAM (CUDA
// runtime documentation, cudaLimitMaxL2FetchGranularity), and keeps lines of 128.
void Counter::CountReuse(Array& array, DeviceAddress start, uint64_t line, uint32_t sectors, bool load) {
  if (sectors == 0) return;
  const uint32_t now = ++trace_->touched_lines;
  for (uint32_t half = 0; half < 2; ++half) {
    if (((sectors >> (2 * half)) & 3u) == 0) continue;
    const uint64_t address = line * SectorCache::kLine + half * 2 * SectorCache::kSector;
    const uint64_t pair = address < start ? 0 : (address - start) / (2 * SectorCache::kSector);
    if (2 * pair + 1 >= array.sectors + 2) continue;
    uint32_t& by = array.last_touch[2 * pair];
    uint32_t& at = array.last_touch[2 * pair + 1];
    if (by == trace_->number) {
      const auto distance = static_cast<size_t>(std::bit_width(now - at));
      (load ? array.traffic.load_again : array.traffic.store_again)[std::min(distance, kReuseDistances - 1)] += 1;
    } else if (load) {
      array.traffic.unique_load_pairs += 1;
    }
    by = trace_->number;
    at = now;
  }
}

// Sectors that a store fills only in part, and their lines.
void Counter::CountPartialSectors(Array& array, DeviceAddress start, uint32_t mask, const Access& access) {
  struct Filled {
    uint64_t sector;
    uint32_t bytes;
  };
  Filled filled[kLanes];
  uint32_t count = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint64_t offset = access.address[std::countr_zero(m)] - start;
    const uint64_t sector = offset / SectorCache::kSector;
    const auto bytes = static_cast<uint32_t>(((uint64_t{1} << access.bytes) - 1) << (offset % SectorCache::kSector));
    uint32_t found = count;  // search from the last one: neighbouring lanes most often share it
    while (found > 0 && filled[found - 1].sector != sector) --found;
    if (found == 0) filled[(found = ++count) - 1] = {sector, 0};
    filled[found - 1].bytes |= bytes;
  }
  uint64_t lines[kLanes];
  uint32_t line_count = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (filled[i].bytes == kAllLanes) continue;
    array.traffic.store_partial_sectors += 1;
    const uint64_t line = (start + filled[i].sector * SectorCache::kSector) / SectorCache::kLine;
    if (std::find(lines, lines + line_count, line) == lines + line_count) lines[line_count++] = line;
  }
  array.traffic.store_partial_lines += line_count;
}

void Counter::ChangeWarps(Warp& warp) {
  trace_->loads = 0;
  trace_->unordered = true;
  warp.yield = true;
  warp.limit = 0;
}

}  // namespace kgrpo::simt
