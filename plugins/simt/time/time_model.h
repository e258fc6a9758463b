// Estimates a counted kernel's seconds on a GPU described by a data sheet, and what bounds it.
#pragma once

#include <cstdint>  // sizes
#include <string>   // sentences
#include <utility>  // exchange, pairs
#include <vector>   // terms

#include "simt/state/counts.h"

namespace kgrpo::simt {

// A GPU. Every field is read from a YAML file that names its source; see devices/h100.yaml.
struct Device {
  std::string name;
  int multiprocessors = 0;
  double clock_hz = 0;  // under load
  int max_threads_per_multiprocessor = 0;
  int max_blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int register_allocation_unit = 0;  // registers a warp are rounded up to this
  int max_registers_per_thread = 0;
  uint32_t shared_bytes_per_multiprocessor = 0;
  uint32_t shared_bytes_per_block = 0;
  uint32_t shared_reserved_per_block = 0;
  uint32_t l1_bytes = 0;  // L1 and shared memory together
  int schedulers = 0;     // a multiprocessor
  // Warp instructions a cycle and multiprocessor, by pipe.
  double issue_rate = 0, fp32_rate = 0, int_rate = 0, half_rate = 0, fp64_rate = 0, special_rate = 0, memory_rate = 0;
  double tensor_flops_per_cycle = 0;  // dense f16, a multiprocessor
  double l1_effective = 0;            // effective part of a block's even share of the L1
  double l1_lines_per_cycle = 0;      // 128-byte wavefronts, a multiprocessor
  double shared_wavefronts_per_cycle = 0;
  double shared_conflict_cycles = 0;  // cost of each wavefront beyond the fewest possible, in wavefronts
  double l2_sectors_per_cycle = 0;    // 32-byte sectors of the whole L2, at clock_hz
  double l2_partial_store = 0;        // cost of a partly written sector, in sectors
  double l2_bytes = 0;
  double l2_keeps = 0;  // part of l2_bytes in which a launch finds data of earlier launches
  double dram_bytes_per_second = 0;
  double dram_efficiency = 0;       // part of the bandwidth that a perfect stream reaches
  double l2_atomics_per_cycle = 0;  // sectors, whole device
  double atomic_turn_cycles = 0;    // turn of one L2 unit, which serves each address of a sector once
  double shared_atomic_cycles = 0;  // a wavefront
  Latencies latencies;
  double launch_seconds = 0;       // what an empty kernel takes between two events
  double next_launch_seconds = 0;  // the same for each further launch of a call
  double warp_start_cycles = 0;    // between a block and its successor, for each warp of the block
  double barrier_warp_cycles = 0;  // added to a barrier's latency, per warp of the block
  double blocks_per_cycle = 0;     // blocks started per cycle
  double norm = 0;                 // exponent of the p-norm over the pipes, with many generations of blocks
  double latency_norm = 0;         // exponent that joins them with latency, for many warps
  double overlap_warps = 0;        // warps per multiprocessor at which that exponent is a quarter of the way from 1
  double overlap_blocks = 0;       // resident blocks at which barriers halve that exponent's distance from 1

  // Reads a device file. Throws kgrpo::Error(KGRPO_ERROR_INVALID) "FILE:LINE: ..." for a missing, unknown or wrong
  // field.
  static Device Load(const std::string& path);
};

// Resources that the compiler assigned to the kernel.
struct KernelResources {
  int registers_per_thread = 32;  // ptxas -v
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_bytes = 0;
  uint32_t spill_bytes = 0;  // a thread's stack where registers are spilled
};

struct Occupancy {
  int blocks_per_multiprocessor = 0;  // 0: does not fit at all
  int warps_per_multiprocessor = 0;
  double fraction = 0;  // of the device's warps
  std::string limit;    // "registers", "shared memory", "threads", "blocks"
  // How many blocks each of them has room for; shared memory: -1 where the kernel takes none.
  int by_registers = 0, by_shared_memory = -1, by_threads = 0, by_blocks = 0;
};
Occupancy ComputeOccupancy(const Device& device, const KernelResources& resources, uint32_t threads_per_block);

struct TimeTerm {
  std::string name;    // "dram", "l2", "l1", "shared", "issue", "fp32", ..., "latency", "launch"
  double seconds = 0;  // if nothing else took time
  std::string detail;  // "50.3 MB, 78% of the sectors' bytes used"
};

struct TimeEstimate {
  double seconds = 0;
  double launch_seconds = 0;    // part of `seconds`: the fixed cost of a launch
  double norm = 1;              // exponent that joined the terms but latency
  double latency_norm = 1;      // and that joined latency with them
  std::string bound;            // name of the largest term
  std::vector<TimeTerm> terms;  // largest first
  Occupancy occupancy;
  double dram_bytes = 0, l2_bytes = 0;
  std::string sentence;  // the bound and its cause, for a prompt
};

// The device's latencies for a launch: `transfer` is the cycles that the multiprocessor's port to the L2 needs for a
// sector of each of its resident warps.
Latencies LatenciesOf(const Device& device, const Occupancy& occupancy, uint32_t warps_per_block, uint64_t blocks);

// The bytes of L1 that a block has while as many as fit run together: LaunchConfig::l1_share.
uint32_t L1Share(const Device& device, const KernelResources& resources, uint32_t threads_per_block, uint64_t blocks);

// The contents of the L2 after the earlier launches of a call, if any: bytes by range of an array. The range touched
// last comes last.
class L2Contents {
 public:
  struct Touched {
    uint64_t address = 0;       // of an array
    double begin = 0, end = 0;  // within it
    double bytes = 0;           // of these
    double last = 0;            // the part of the bytes touched after all other arrays
    // The part of this range that lies in the other.
    double Within(const Touched& other) const;
  };
  // Call this at a launch's start. Returns true if there was a launch before.
  bool Launch() { return std::exchange(launched_, true); }
  // The bytes that the cache holds of a range.
  double BytesOf(const Touched& range) const;
  // Adds the ranges that a launch touched, to a cache that keeps `capacity`.
  void Touch(const std::vector<Touched>& ranges, double capacity);

 private:
  bool launched_ = false;
  std::vector<Touched> kept_;
};

// Modelled time of one launch. A kernel whose block does not fit on the device has infinite seconds and a sentence that
// says why. `contents` is what the L2 holds before, and is brought up to date; without one it holds nothing. Without
// `explain` the texts stay empty, which is many times faster.
TimeEstimate EstimateTime(const Counts& counts, const KernelResources& resources, const Device& device,
                          L2Contents* contents = nullptr, bool explain = true);

}  // namespace kgrpo::simt
