// Counts how soon a block returns to memory that the L1 has lost, which decides if the L2 still holds it, and how far
// stores fill the sectors that they touch. Part of the counter.
#include <algorithm>
#include <bit>

#include "simt/time/counter.h"

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

// A store that touches few lines waits in the L1 for others to the same lines: neighbours that a thread stores one
// after the other, or warps after a barrier. Returns the sectors that this one adds to what is sent to the L2. Measured
// on an H100: two or four neighbours a thread, or tiles that a block stores by every fourth word, take no longer than
// whole sectors; eight neighbours, or a line for each lane, are sent as they are.
uint32_t Counter::CountStored(Array& array, DeviceAddress start, uint32_t mask, const Access& access) {
  Stored lines[kLanes];
  uint32_t count = 0;
  for (const int lane : EachBit(mask)) {
    const uint64_t address = access.address[lane];
    const uint64_t line = address / SectorCache::kLine;
    const auto sector = static_cast<uint32_t>(address % SectorCache::kLine / SectorCache::kSector);
    uint32_t found = count;  // search from the last one: neighbouring lanes most often share it
    while (found > 0 && lines[found - 1].line != line) --found;
    if (found == 0) lines[(found = ++count) - 1] = {&array.traffic, line, {}};
    lines[found - 1].bytes[sector] |=
        static_cast<uint32_t>(((uint64_t{1} << access.bytes) - 1) << (address % SectorCache::kSector));
  }
  BlockTrace& trace = *trace_;
  uint32_t sent = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Stored& now = lines[i];
    for (uint32_t s = 0; s < 4; ++s) {
      if (now.bytes[s] == 0) continue;
      const uint64_t address = now.line * SectorCache::kLine + s * SectorCache::kSector;
      const uint64_t sector = address < start ? 0 : (address - start) / SectorCache::kSector;
      if (sector >= array.sectors) continue;
      uint32_t& all = array.stored_bytes[sector];
      const uint32_t before = array.stored_by[sector] == trace.number ? all : 0;
      all = before | now.bytes[s];
      array.traffic.unique_store_bytes += std::popcount(all & ~before);
      array.traffic.whole_store_sectors += all == kAllLanes && before != kAllLanes ? 1 : 0;
    }
    const bool whole = std::all_of(now.bytes.begin(), now.bytes.end(),
                                   [](uint32_t bytes) { return bytes == 0 || bytes == kAllLanes; });
    if (count > kCombinedLines || whole) {
      sent += Send(now);
      continue;
    }
    auto waiting = std::find_if(trace.stored.begin(), trace.stored.end(),
                                [&](const Stored& stored) { return stored.line == now.line; });
    if (waiting == trace.stored.end()) {
      waiting = trace.stored.begin() + static_cast<ptrdiff_t>(trace.next_stored++ % trace.stored.size());
      Send(*waiting);
      *waiting = {now.traffic, now.line, {}};
    }
    for (uint32_t s = 0; s < 4; ++s) {
      sent += now.bytes[s] != 0 && waiting->bytes[s] == 0 ? 1 : 0;
      waiting->bytes[s] |= now.bytes[s];
    }
  }
  return sent;
}

// Sends a line's stores to the L2, if there are any. Returns their sectors.
uint32_t Counter::Send(const Stored& stored) {
  if (stored.traffic == nullptr) return 0;
  uint32_t sectors = 0, partial = 0;
  for (const uint32_t bytes : stored.bytes) {
    sectors += bytes != 0 ? 1 : 0;
    partial += bytes != 0 && bytes != kAllLanes ? 1 : 0;
  }
  stored.traffic->store_sectors += sectors;
  stored.traffic->store_partial_sectors += partial;
  stored.traffic->store_partial_lines += partial > 0 ? 1 : 0;
  return sectors;
}

void Counter::ChangeWarps(Warp& warp) {
  trace_->loads = 0;
  trace_->unordered = true;
  warp.yield = true;
  warp.limit = 0;
}

}  // namespace kgrpo::simt
