// The time of one warp from start to end if it had a multiprocessor for itself: the latency that only other warps can
// hide.
//
// Machine code is not in PTX's order: ptxas moves loads up and their uses down. So each region's instructions
// (regions.h) are first ordered by a list scheduler (longest path first), then issued in that order, each waiting for
// its operands.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "simt/state/counts.h"
#include "simt/state/program.h"
#include "simt/time/regions.h"

namespace kgrpo::simt {

class Scoreboard {
 public:
  // `costs` are the kernel's, after merging (see machine_code.h). All references must outlive this.
  Scoreboard(const Kernel& kernel, const std::vector<Cost>& costs, const Latencies& latencies);

  // Finds the longest chain from the trace's start to the last result, including the bulk loads that it waits for. Adds
  // to `chain`, by pc, each instruction's cycles in it, with all L1 misses served by DRAM.
  BlockLatency Time(const std::vector<TraceEntry>& trace, const std::vector<TraceCopy>& copies,
                    std::vector<double>* chain);

 private:
  // A region's instructions by their positions in it. Turns of an unrolled loop use the same PTX registers, so the
  // producers of operands are found once, in the order of the PTX.
  struct Region {
    std::vector<uint32_t> order;                      // the order of issue
    std::vector<int32_t> operands;                    // of all: a producer's position, or a register's complement
    std::vector<uint32_t> operands_end;               // by instruction
    std::vector<std::pair<uint32_t, uint32_t>> left;  // written registers, and their last writers
  };
  struct Value {
    double ready = 0;
    int32_t step = -1;
    // Of a load beyond the L1: the step that is its transfer, when that arrives, and the loads of shared memory before.
    int32_t transfer = -1;
    double transferred = 0;
    uint32_t tile_reads = 0;
  };
  Region Schedule(const std::vector<uint32_t>& pcs);
  // Latency terms that its result waits for, and how often; kCount if the result is available at once.
  struct Wait {
    LatencyTerm term = LatencyTerm::kCount;
    double times = 0, extra = 0;  // cycles beside the latencies
  };
  Wait WaitOf(uint32_t pc, bool beyond_l1, bool dram, uint32_t times = 1) const;
  double Cycles(const Wait& wait) const;
  double Occupies(uint32_t pc) const;
  bool FillsTile(uint32_t pc) const;  // a store to shared memory

  // One run through the trace, with the L2 or DRAM behind the L1: when everything is ready, and for each instruction
  // issued what it waited for.
  struct Run;
  void Play(const std::vector<TraceEntry>& trace, const std::vector<TraceCopy>& copies, const std::vector<Run*>& runs);
  void Issue(Run& run, const Region& region, uint32_t i, const TraceEntry& entry, std::vector<Value>& done) const;
  void IssueCopy(Run& run, const TraceCopy& copy) const;
  Value Transfer(Run& run, uint32_t pc, bool dram, double now, double sectors) const;
  Value AwaitedGroups(Run& run, const Instruction& wait) const;
  LatencyPath Follow(const Run& run, std::vector<double>* chain) const;

  const Kernel& kernel_;
  const std::vector<Cost>& costs_;
  const std::array<double, kLatencyTerms> latencies_;
  const Regions regions_;
  std::map<std::vector<uint32_t>, Region> orders_;  // by a region's blocks
  std::vector<int32_t> writer_;                     // scratch of Schedule
  bool fills_tiles_ = false;                        // some instruction does
};

}  // namespace kgrpo::simt
