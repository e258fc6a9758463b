#include "simt/time/traffic.h"

#include <algorithm>
#include <cmath>

namespace kgrpo::simt {
namespace {

// Returns the sectors that miss an L1 of `share` times the even share, interpolated between the counted sizes on a
// logarithmic scale.
double MissedSectors(const ArrayTraffic& array, double share) {
  if (share <= kL1Shares.front()) return array.l1_miss_sectors.front();
  for (size_t i = 1; i < kL1Shares.size(); ++i) {
    if (share > kL1Shares[i]) continue;
    const double t = std::log(share / kL1Shares[i - 1]) / std::log(kL1Shares[i] / kL1Shares[i - 1]);
    return array.l1_miss_sectors[i - 1] * (1 - t) + array.l1_miss_sectors[i] * t;
  }
  return array.l1_miss_sectors.back();
}

// Returns the repeated accesses to data that the L1 has lost and the L2 has lost too. Between two touches, all blocks
// at once fetch `line` bytes for each line of one block, at most `most`; the L2 keeps `kept` of it. The square lies
// between a cache that evicts a random line and one that evicts the oldest line, which loses everything if the data
// does not fit.
double LostReturns(const ByDistance& returns, double line, double most, double kept) {
  double lost = 0;
  for (size_t i = 0; i < returns.size(); ++i) {
    const double live = std::min(std::max(1.0, most), line * std::exp2(static_cast<double>(i) - 0.5));
    const double stays = std::min(1.0, kept / live);
    lost += returns[i] * (1 - stays * stays);
  }
  return lost;
}

// The range of an array that the launch touches. The counted blocks, which are spread evenly, miss some of its ends.
L2Contents::Touched RangeOf(const ArrayTraffic& array, size_t counted_blocks, uint64_t blocks) {
  constexpr double kWhole = 0.9;  // of the array
  const auto bytes = static_cast<double>(array.bytes);
  if (array.high <= array.low) return {array.address, 0, bytes};
  auto low = static_cast<double>(array.low), high = static_cast<double>(array.high);
  const double missed = counted_blocks < blocks ? (high - low) / static_cast<double>(counted_blocks) : 0;
  low = std::max(0.0, low - missed);
  high = std::min(bytes, high + missed);
  return high - low < kWhole * bytes ? L2Contents::Touched{array.address, low, high}
                                     : L2Contents::Touched{array.address, 0, bytes};
}

}  // namespace

Traffic SumTraffic(const Counts& counts, const Device& device, double scale, double blocks_at_once,
                   const L2Contents& contents) {
  Traffic sum;
  double footprint = 0;
  for (const ArrayTraffic& array : counts.arrays) {
    footprint += std::min(static_cast<double>(array.bytes),
                          scale * (array.unique_load_sectors + array.unique_store_sectors) * kSectorBytes);
  }
  // Data that does not fit into the L2 is fetched again by each generation of blocks that run together.
  const double overflow = std::max(0.0, 1.0 - device.l2_bytes / std::max(footprint, 1.0));
  const double generations = std::max(1.0, static_cast<double>(counts.grid_blocks) / std::max(1.0, blocks_at_once));
  for (const ArrayTraffic& array : counts.arrays) {
    const double missed = MissedSectors(array, device.l1_effective) * scale;
    sum.load_sectors += array.load_sectors * scale;
    sum.missed_sectors += missed;
    sum.first_sectors += std::min(missed, array.unique_load_sectors * scale);
    sum.store_sectors += array.store_sectors * scale;
    sum.partial_sectors += array.store_partial_sectors * scale;
    sum.partial_lines += array.store_partial_lines * scale;
    sum.atomic_sectors += array.atomic_sectors * scale;
    sum.useful_load += array.load_ideal_sectors * scale;
    sum.useful_store += array.store_ideal_sectors * scale;
    const double whole = std::ceil(static_cast<double>(array.bytes) / kSectorBytes);
    const double once = std::min(whole, std::max(array.unique_load_sectors, 2 * array.unique_load_pairs) * scale);
    // Blocks that run together share part of what they load.
    const double per_block =
        array.unique_load_sectors / std::max<double>(1, static_cast<double>(counts.sampled_blocks));
    const double a_generation = std::min(once, per_block * std::sqrt(std::max(1.0, blocks_at_once)));
    const double again = overflow * std::max(0.0, std::min(generations * a_generation, missed) - once);
    // Data that an earlier launch left in the L2 need not be read, and is not written to DRAM if it is written again.
    L2Contents::Touched range = RangeOf(array, counts.latency.size(), counts.grid_blocks);
    const double kept = contents.BytesOf(range);
    sum.kept_read += std::min(kept, once * kSectorBytes);
    sum.dram_read += again * kSectorBytes + std::max(0.0, once * kSectorBytes - kept);
    const double stored = std::min(whole, array.unique_store_sectors * scale) * kSectorBytes;
    sum.dram_written += std::max(0.0, stored - kept);
    // Sectors that the whole launch leaves partly written are read from DRAM before they are written there.
    const double gaps = 1 - std::min(1.0, array.unique_store_bytes * scale / std::max(1.0, stored));
    const double left = 1 - array.whole_store_sectors / std::max(1.0, array.unique_store_sectors);
    sum.dram_read += std::max(0.0, stored - kept) * left * std::min(1.0, 2 * gaps);
    const auto lost = [&](const ByDistance& returns) {
      return scale * LostReturns(returns, kLineBytes * blocks_at_once, footprint, device.l2_bytes);
    };
    const double written_again = lost(array.store_again);  // fetched before if written in part
    sum.dram_read += (2 * lost(array.load_again) + written_again) * kSectorBytes;
    sum.dram_written += written_again * kSectorBytes;
    // The last generation of blocks stores when all has been loaded.
    range.bytes = std::max(once * kSectorBytes, stored);
    range.last = stored / generations;
    sum.touched.push_back(range);
    if (array.atomic_sectors > 0) sum.dram_read += std::min(whole, array.atomic_sectors * scale) * kSectorBytes;
    const auto wasteful = [&](bool load, double asked, double ideal, double cost) {
      if (asked > 1.1 * ideal)
        sum.wasteful.push_back({&array, load, cost / device.l2_sectors_per_cycle / device.clock_hz});
    };
    wasteful(true, array.load_sectors, array.load_ideal_sectors, missed);
    wasteful(false, array.store_sectors, array.store_ideal_sectors,
             scale * (array.store_sectors +
                      PartialStoreCost(array.store_partial_lines, array.store_partial_sectors, device)));
  }
  std::stable_sort(sum.wasteful.begin(), sum.wasteful.end(),
                   [](const Traffic::Wasteful& a, const Traffic::Wasteful& b) { return a.seconds > b.seconds; });
  return sum;
}

double PartialStoreCost(double lines, double sectors, const Device& device) {
  // The part of a partly written sector's cost that it shares with other such sectors of its line: 1, 2 and 4 of them
  // took 0.030, 0.045 and 0.081 cycles of an H200.
  constexpr double kOfLine = 0.6;
  return (device.l2_partial_store - 1) * (kOfLine * lines + (1 - kOfLine) * sectors);
}

AtomicCycles CyclesOfAtomics(const Counts& counts, const Device& device) {
  const double scale = static_cast<double>(counts.grid_blocks) / static_cast<double>(counts.sampled_blocks);
  return {counts.global_atomic_operations * scale / device.l2_atomics_per_cycle,
          counts.busiest_atomic_turns * device.atomic_turn_cycles};
}

double L2Contents::Touched::Within(const Touched& other) const {
  if (address != other.address) return 0;
  return std::max(0.0, std::min(end, other.end) - std::max(begin, other.begin)) / std::max(1.0, end - begin);
}

double L2Contents::BytesOf(const Touched& range) const {
  double bytes = 0;
  for (const Touched& kept : kept_) bytes += kept.bytes * kept.Within(range);
  return bytes;
}

void L2Contents::Touch(const std::vector<Touched>& ranges, double capacity) {
  double sum = 0, last = 0;
  for (const Touched& range : ranges) {
    sum += range.bytes;
    last += range.last;
    for (Touched& kept : kept_) kept.bytes *= 1 - kept.Within(range);
  }
  // Earlier ranges make room, the oldest first. If the new ones are larger than the cache, each keeps its share.
  double room = std::max(0.0, capacity - sum);
  for (size_t i = kept_.size(); i-- > 0;) {
    kept_[i].bytes = std::min(kept_[i].bytes, room);
    room -= kept_[i].bytes;
  }
  std::erase_if(kept_, [](const Touched& kept) { return kept.bytes <= 0; });
  const double last_part = std::min(1.0, capacity / std::max(last, 1.0));
  const double part = std::min(1.0, std::max(0.0, capacity - last) / std::max(sum - last, 1.0));
  for (Touched range : ranges) {
    range.bytes = range.last * last_part + (range.bytes - range.last) * part;
    kept_.push_back(range);
  }
}

}  // namespace kgrpo::simt
