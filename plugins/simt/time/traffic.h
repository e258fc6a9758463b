// A counted launch's traffic at the L2 and at DRAM. Part of the time model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "simt/time/time_model.h"

namespace kgrpo::simt {

inline constexpr double kSectorBytes = 32, kLineBytes = 128;

struct Traffic {
  double load_sectors = 0, missed_sectors = 0, store_sectors = 0, partial_sectors = 0, partial_lines = 0,
         atomic_sectors = 0;                 // whole grid
  double first_sectors = 0;                  // the part of missed_sectors that is new to its block
  double dram_read = 0, dram_written = 0;    // bytes
  double kept_read = 0;                      // bytes that are read but need no fetch from DRAM
  double useful_load = 0, useful_store = 0;  // sectors, if all were filled
  std::vector<L2Contents::Touched> touched;  // what the next launch may find
  // Accesses that touch more sectors than their bytes fill, and the seconds of the L2 that they take; most first.
  struct Wasteful {
    const ArrayTraffic* array;
    bool load;
    double seconds;
  };
  std::vector<Wasteful> wasteful;
};

// `scale`: the grid's blocks over the sampled ones. `blocks_at_once`: the blocks that run together.
Traffic SumTraffic(const Counts& counts, const Device& device, double scale, double blocks_at_once,
                   const L2Contents& contents);

// Returns the extra cost, in sectors of the L2, of stores that fill `sectors` sectors of `lines` lines only in part.
double PartialStoreCost(double lines, double sectors, const Device& device);

// Cycles of shared memory's data path, of a Counts or a Demand.
template <typename Counted>
double SharedCycles(const Counted& counted, const Device& device) {
  const double conflicts = std::max(0.0, counted.shared_wavefronts - counted.shared_ideal_wavefronts);
  return counted.shared_ideal_wavefronts + device.shared_conflict_cycles * conflicts + counted.exchange_wavefronts;
}

// Cycles of the atomics of the whole grid: all of them at the L2's rate, and those of its busiest unit.
struct AtomicCycles {
  double all = 0, busiest = 0;
};
AtomicCycles CyclesOfAtomics(const Counts& counts, const Device& device);

}  // namespace kgrpo::simt
