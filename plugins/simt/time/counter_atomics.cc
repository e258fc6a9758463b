// Cost of atomics, and their cost if threads added up first.
#include <algorithm>
#include <bit>

#include "simt/state/handlers.h"
#include "simt/time/bank_conflicts.h"
#include "simt/time/counter.h"

namespace kgrpo::simt {
namespace {

// Costs of atomic additions of floats. In shared memory, in units of an integer's turn: without and with lanes that
// meet at one address. In global memory, between two additions to one address, in an integer's turns. Measured on an
// H100; the last one on an H200: 3.42 and 1.43 cycles.
constexpr double kFloatAtomicRound = 3.3, kFloatAtomicContended = 11.7, kFloatAtomicTurns = 2.39;

// Returns the turns of an L2 unit for `sectors` sectors and `floats_at_one` consecutive floats at one address.
double AtomicTurns(double sectors, double floats_at_one) {
  return std::max(sectors, kFloatAtomicTurns * floats_at_one);
}

}  // namespace

void Counter::CountSharedAtomic(const Instruction& in, uint32_t mask, const Access& access) {
  // The lanes of a warp arrive at an mbarrier together.
  if (in.run == &MbarrierArrive || in.run == &MbarrierInit || in.run == &MbarrierWait) {
    const double cycles = in.run == &MbarrierWait ? kMbarrierWait : kMbarrierArrival;
    counts_.shared_wavefronts += cycles;
    counts_.shared_ideal_wavefronts += cycles;
    return;
  }
  // Lanes at one address take turns.
  uint64_t addresses[kLanes];
  uint32_t count = 0;
  for (const int l : EachBit(mask)) addresses[count++] = access.address[l];
  std::sort(addresses, addresses + count);
  uint32_t most = 0;
  for (uint32_t i = 0, run = 0; i < count; ++i) {
    run = i > 0 && addresses[i] == addresses[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  // Integers are added in place. Floats are added by a compare-and-swap loop, which needs a round for each lane at one
  // address.
  const bool is_float = grid_.kernel->float_atomic[in.index] != 0;
  const double apart = BankCycles(access.address, mask, access.bytes);
  double turns = std::max<double>(most, apart);
  if (is_float) turns = most == 1 ? kFloatAtomicRound * turns : kFloatAtomicContended * most;
  if (!is_float && grid_.kernel->uniform_address[in.index] != 0) turns = 1;
  counts_.shared_atomic_wavefronts += turns;
  counts_.shared_atomic_ideal_wavefronts += std::min(turns, is_float ? kFloatAtomicRound * apart : apart);
}

// The L2's unit adds to each address of a sector once in a turn. Lanes at one address need a turn each, and floats wait
// for one another.
void Counter::CountGlobalAtomic(const Instruction& in, uint32_t mask, const Access& access, DeviceAddress start) {
  // Integers at an address that the compiler knows to be the same for the warp are summed within the warp first.
  const bool is_float = grid_.kernel->float_atomic[in.index] != 0;
  if (!is_float && grid_.kernel->uniform_address[in.index] != 0) mask &= ~mask + 1;
  uint64_t addresses[kLanes];
  uint32_t count = 0;
  // As if the allocation began at a multiple of a kilobyte: see FindBusiestAtomics.
  const uint64_t shift = (kAtomicPeriod - start % kAtomicPeriod) % kAtomicPeriod;
  for (const int l : EachBit(mask)) addresses[count++] = access.address[l] + shift;
  std::sort(addresses, addresses + count);
  for (uint32_t i = 0; i < count;) {
    const uint64_t part = addresses[i] / kAtomicPart;
    uint32_t turns = 0, most = 0;  // of all sectors, and of one address
    uint8_t sectors = 0;
    while (i < count && addresses[i] / kAtomicPart == part) {
      const uint64_t sector = addresses[i] / SectorCache::kSector;
      uint32_t most_of_sector = 0, run = 0;
      for (const uint32_t first = i; i < count && addresses[i] / SectorCache::kSector == sector; ++i) {
        run = i > first && addresses[i] == addresses[i - 1] ? run + 1 : 1;
        most_of_sector = std::max(most_of_sector, run);
      }
      turns += most_of_sector;
      sectors |= static_cast<uint8_t>(1u << (sector % (kAtomicPart / SectorCache::kSector)));
      most = std::max(most, most_of_sector);
    }
    AtomicPart& busy = atomic_parts_[part];
    busy.is_float |= is_float;
    busy.turns += AtomicTurns(turns, is_float ? most : 0);
    busy.turns_by_warp += AtomicTurns(std::popcount(sectors), is_float ? 1 : 0);
    if (busy.block != trace_->number) {
      busy.block = trace_->number;
      ++busy.blocks;
      busy.of_block = 0;
    }
    busy.sectors_by_block += std::popcount(static_cast<uint8_t>(sectors & ~busy.of_block));
    busy.of_block |= sectors;
    busy.of_all |= sectors;
  }
}

// A unit of the L2 serves every second 256 bytes of a kilobyte: two of the four parts. The pairing depends on the
// parity of the memory's start in units of 512 bytes. cudaMalloc gives either, so this takes the mean of both.
void Counter::FindBusiestAtomics() {
  const double scale = counts_.sampled_blocks == 0
                           ? 0
                           : static_cast<double>(counts_.grid_blocks) / static_cast<double>(counts_.sampled_blocks);
  // Several blocks ran and only one touched this part: assume that each block has such a part of its own.
  const auto own = [&](const AtomicPart& part) { return part.blocks == 1 && counts_.sampled_blocks > 1; };
  const auto busiest = [&](auto turns_of) {
    std::unordered_map<uint64_t, double> units[2];
    double most[2] = {0, 0};
    for (const auto& [number, part] : atomic_parts_) {
      for (uint64_t placement = 0; placement < 2; ++placement) {
        const uint64_t placed = number + 2 * placement;
        double& turns = units[placement][placed / 4 * 2 + placed % 2];
        turns += turns_of(part);
        most[placement] = std::max(most[placement], turns);
      }
    }
    return (most[0] + most[1]) / 2;
  };
  const auto times = [&](const AtomicPart& part) { return own(part) ? 1 : scale; };
  counts_.busiest_atomic_turns = busiest([&](const AtomicPart& part) { return times(part) * part.turns; });
  FewerAtomicTurns& fewer = counts_.fewer_atomic_turns;
  fewer.by_warp = busiest([&](const AtomicPart& part) { return times(part) * part.turns_by_warp; });
  fewer.by_block = busiest([&](const AtomicPart& part) {
    return times(part) * AtomicTurns(part.sectors_by_block, part.is_float ? part.blocks : 0);
  });
  fewer.of_a_block = busiest([&](const AtomicPart& part) {
    return own(part) ? 0 : AtomicTurns(std::popcount(part.of_all), part.is_float ? 1 : 0);
  });
  for (const auto& [number, part] : atomic_parts_) counts_.atomic_operations_by_block += part.sectors_by_block;
}

}  // namespace kgrpo::simt
